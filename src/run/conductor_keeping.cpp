// The conductor's process and the model: what stages hand in of it, when it is whole, what is done with it then.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>
#include <utility>

#include "codec/magnitude.h"
#include "run/conductor_process.h"

namespace motley::run {

std::span<std::byte> ConductorProcess::room(transport::Connection& from, const wire::Message& head, std::size_t bytes) {
  const auto link = links_.find(&from);
  if (link == links_.end()) return {};
  if (const auto why = objection(link->second, wire::Lane::bulk, head)) {
    expel(link->second, *why);
    return {};
  }
  Landing& landing = landing_[&from];
  landing = {};
  const auto& slice = std::get<wire::StageSlice>(head);
  const bool wanted = slice.generation == generation_ && slice.mini_batches > conductor_.kept() && !cut_.empty();
  const auto part = wanted ? models_.room(slice, bytes) : ModelParts::Landing{};
  if (!part) return {};
  landing.part = *part;
  if (part->keeps) return std::as_writable_bytes(part->values);
  landing.waste.resize(bytes);
  return landing.waste;
}

void ConductorProcess::received(transport::Connection& from, const wire::Message& head) {
  slices_moved_ = true;
  const ModelParts::Landing part = std::exchange(landing_[&from], {}).part;
  const auto& slice = std::get<wire::StageSlice>(head);
  if (!models_.wants(slice, part)) return;  // laid out anew meanwhile, or left out
  if (!codec::all_finite(part.values))      // never missing none: never kept
    return diverged(fmt::format("stage {} on node {} handed in values that are not finite, of mini-batch {}", slice.stage + 1,
                                options_.cluster.nodes[cut_[slice.stage].device].name, slice.mini_batches));
  if (models_.received(slice, part)) tell(protocol::ModelKept{slice.mini_batches});
}

/// The machine has taken it for kept: from now on this is the model.
void ConductorProcess::take_whole(std::uint64_t mini_batches) {
  if (!models_.put(mini_batches, options_.model)) return;
  // Saving goes first: where processors are busy an evaluation takes its time, and what dies meanwhile is lost.
  if (options_.checkpoint_every > 0 && mini_batches / options_.checkpoint_every > saved_ / options_.checkpoint_every) save();
  if (mini_batches % options_.evaluate_every == 0 || mini_batches == options_.conductor.mini_batches) judge(mini_batches);
}

void ConductorProcess::judge(std::uint64_t mini_batches) {
  if (!hooks_.evaluate) return;
  ++judging_;
  const Instant at{trained()};
  clerk_.post([this, alive = alive_, values = std::make_shared<const std::vector<float>>(options_.model.values), at, mini_batches] {
    const auto judged = std::make_shared<Result<Judgement>>(hooks_.evaluate(*values));
    boost::asio::post(pump_, [this, alive, judged, at, mini_batches] {
      if (!*alive) return;
      --judging_;
      if (!*judged) return end(judged->error());
      hooks_.told({.at = at,
                   .kind = trace::Kind::evaluated,
                   .version = {mini_batches},
                   .first = samples_of(mini_batches),
                   .value = (*judged)->accuracy,
                   .second = (*judged)->loss});
      if (!std::isfinite((*judged)->loss))
        return diverged(fmt::format("the loss of the model after mini-batch {} is not finite", mini_batches));
      finish_when_done();
    });
  });
}

void ConductorProcess::save() {
  if (!hooks_.save || options_.model.updates == 0) return;
  saved_ = options_.model.updates;
  ++judging_;
  flush_until(done_at_);  // a checkpoint without its part of the trace is of no use
  if (hooks_.saving) hooks_.saving();
  clerk_.post(
      [this, alive = alive_, kept = std::make_shared<const KeptModel>(KeptModel{options_.model, options_.model.updates, trained()})] {
        const auto written = std::make_shared<Outcome>(hooks_.save(*kept));
        boost::asio::post(pump_, [this, alive, written] {
          if (!*alive) return;
          --judging_;
          if (hooks_.saved) hooks_.saved(*written);
          finish_when_done();
        });
      });
}

}  // namespace motley::run
