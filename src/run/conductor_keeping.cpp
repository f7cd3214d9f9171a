// The conductor's process and the model: what stages hand in of it, when it is whole, what is done with it then.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>
#include <iterator>
#include <utility>

#include "codec/magnitude.h"
#include "run/conductor_process.h"

namespace motley::run {

namespace {

// Models that are being handed in at once: one is usual, more while links are slow. Of more, the oldest will be kept no more.
constexpr std::size_t most_incoming = 16;

}  // namespace

std::vector<float>& ConductorProcess::Incoming::numbers(const wire::StageSlice& slice) {
  store::StagePart& part = parts[slice.stage];
  return slice.holding == wire::Holding::values ? part.values : slice.holding == wire::Holding::first ? part.first : part.second;
}

/// Null: of so many that come in at once, this one is too old.
std::shared_ptr<ConductorProcess::Incoming> ConductorProcess::incoming(std::uint64_t mini_batches) {
  if (const auto found = incoming_.find(mini_batches); found != incoming_.end()) return found->second;
  if (incoming_.size() >= most_incoming) {
    if (mini_batches < incoming_.begin()->first) return nullptr;
    incoming_.erase(incoming_.begin());
  }
  auto& made = incoming_[mini_batches];
  made = std::make_shared<Incoming>();
  made->parts.resize(places_.size());
  made->received.resize(places_.size());
  for (std::size_t s = 0; s < places_.size(); ++s) {
    made->parts[s].values.resize(places_[s].values);
    made->parts[s].first.resize(places_[s].parameters);
    if (options_.second) made->parts[s].second.resize(places_[s].parameters);
    made->parts[s].updates = mini_batches;
    made->missing += places_[s].values + (options_.second ? 2 : 1) * places_[s].parameters;
  }
  return made;
}

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
  const std::shared_ptr<Incoming> held = wanted ? incoming(slice.mini_batches) : nullptr;
  if (!held) {
    landing.waste.resize(bytes);
    return landing.waste;
  }
  std::vector<float>& all = held->numbers(slice);
  const std::uint64_t next = held->received[slice.stage][static_cast<std::size_t>(slice.holding)];
  if (slice.offset != next || bytes % sizeof(float) != 0 || bytes / sizeof(float) > all.size() - next) return {};
  landing.keeps = held;
  landing.values = std::span(all).subspan(slice.offset, bytes / sizeof(float));
  return std::as_writable_bytes(landing.values);
}

void ConductorProcess::received(transport::Connection& from, const wire::Message& head) {
  slices_moved_ = true;
  const Landing landing = std::exchange(landing_[&from], {});
  const auto& slice = std::get<wire::StageSlice>(head);
  const auto found = incoming_.find(slice.mini_batches);
  if (!landing.keeps || found == incoming_.end() || found->second != landing.keeps) return;  // laid out anew meanwhile
  if (!codec::all_finite(landing.values))                                                    // never missing none: never kept
    return diverged(fmt::format("stage {} on node {} handed in values that are not finite, of mini-batch {}", slice.stage + 1,
                                options_.cluster.nodes[cut_[slice.stage].device].name, slice.mini_batches));
  landing.keeps->received[slice.stage][static_cast<std::size_t>(slice.holding)] += landing.values.size();
  landing.keeps->missing -= landing.values.size();
  if (landing.keeps->missing == 0) tell(protocol::ModelKept{slice.mini_batches});
}

/// The machine has taken it for kept: from now on this is the model.
void ConductorProcess::take_whole(std::uint64_t mini_batches) {
  const auto found = incoming_.find(mini_batches);
  if (found == incoming_.end() || found->second->missing > 0) return;
  for (std::size_t s = 0; s < places_.size(); ++s) options_.model.put(places_[s], found->second->parts[s]);
  options_.model.updates = mini_batches;
  incoming_.erase(incoming_.begin(), std::next(found));
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
