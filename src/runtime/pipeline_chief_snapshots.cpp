// The conductor's process and the model: what stages hand in of it, when it is whole, what is done with it then.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>
#include <utility>

#include "codec/magnitude.h"
#include "runtime/pipeline_chief_process.h"

namespace motley::runtime {

std::span<std::byte> PipelineChiefProcess::receive_buffer(transport::Connection& from, const wire::Message& head, std::size_t bytes) {
  const auto link = links_.find(&from);
  if (link == links_.end()) return {};
  if (const auto why = objection(link->second, wire::Lane::bulk, head)) {
    expel(link->second, *why);
    return {};
  }
  ReceiveBuffer& landing_buffer = landing_buffers_[&from];
  landing_buffer = {};
  const auto& slice = std::get<wire::StageSlice>(head);
  const bool wanted = slice.generation == generation_ && slice.mini_batches > pipeline_chief_.kept() && !cut_.empty();
  const auto part = wanted ? models_.receive_buffer(slice, bytes) : ModelParts::ReceiveBuffer{};
  if (!part) return {};
  landing_buffer.part = *part;
  if (part->keeps) return std::as_writable_bytes(part->values);
  landing_buffer.discarded_bytes.resize(bytes);
  return landing_buffer.discarded_bytes;
}

void PipelineChiefProcess::received(transport::Connection& from, const wire::Message& head) {
  slices_moved_ = true;
  const ModelParts::ReceiveBuffer part = std::exchange(landing_buffers_[&from], {}).part;
  const auto& slice = std::get<wire::StageSlice>(head);
  if (!models_.wants(slice, part)) return;  // laid out anew meanwhile, or left out
  if (!codec::all_finite(part.values))      // never missing none: never kept
    return diverged(fmt::format("stage {} on node {} handed in values that are not finite, of mini-batch {}", slice.stage + 1,
                                options_.cluster.nodes[cut_[slice.stage].device].name, slice.mini_batches));
  if (models_.received(slice, part)) tell(protocol::ModelSnapshotComplete{slice.mini_batches});
}

/// The machine has taken it for kept: from now on this is the model.
void PipelineChiefProcess::take_whole(std::uint64_t mini_batches) {
  if (!models_.put(mini_batches, options_.model)) return;
  // Saving goes first: where processors are busy an evaluation takes its time, and what dies meanwhile is lost.
  if (options_.checkpoint_every > 0 && mini_batches / options_.checkpoint_every > saved_ / options_.checkpoint_every) save();
  if (mini_batches % options_.evaluate_every == 0 || mini_batches == options_.pipeline_chief.mini_batches) evaluate(mini_batches);
}

void PipelineChiefProcess::evaluate(std::uint64_t mini_batches) {
  if (!hooks_.evaluate) return;
  ++evaluating_;
  const Instant at{trained()};
  background_thread_.post(
      [this, alive = alive_, values = std::make_shared<const std::vector<float>>(options_.model.values), at, mini_batches] {
        const auto evaluated = std::make_shared<Result<EvaluationResult>>(hooks_.evaluate(*values));
        boost::asio::post(event_loop_, [this, alive, evaluated, at, mini_batches] {
          if (!*alive) return;
          --evaluating_;
          if (!*evaluated) return end(evaluated->error());
          hooks_.on_event({at, trace::Evaluated{.version = {mini_batches},
                                                .samples = samples_of(mini_batches),
                                                .accuracy = (*evaluated)->accuracy,
                                                .loss = (*evaluated)->loss}});
          if (!std::isfinite((*evaluated)->loss))
            return diverged(fmt::format("the loss of the model after mini-batch {} is not finite", mini_batches));
          finish_when_done();
        });
      });
}

void PipelineChiefProcess::save() {
  if (!hooks_.save || options_.model.updates == 0) return;
  saved_ = options_.model.updates;
  ++evaluating_;
  flush_until(done_at_);  // a checkpoint without its part of the trace is of no use
  if (hooks_.saving) hooks_.saving();
  background_thread_.post(
      [this, alive = alive_, kept = std::make_shared<const KeptModel>(KeptModel{options_.model, options_.model.updates, trained()})] {
        const auto written = std::make_shared<Outcome>(hooks_.save(*kept));
        boost::asio::post(event_loop_, [this, alive, written] {
          if (!*alive) return;
          --evaluating_;
          if (hooks_.saved) hooks_.saved(*written);
          finish_when_done();
        });
      });
}

}  // namespace motley::runtime
