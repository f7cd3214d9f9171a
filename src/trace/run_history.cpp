#include "trace/run_history.h"

#include <algorithm>

#include "base/match.h"

namespace motley::trace {

void RunHistory::on_event(const Event& event) {
  if (const auto* joined = event.as<Joined>())
    if (Lane* const joining = lanes_.announce(joined->worker)) joining->node = joined->node;
  if (event.is<Applied>()) applied(event.at);
  if (const auto worker = worker_of(event.data))
    if (Lane* const lane = lanes_.find(*worker)) update(*lane, event);
}

void RunHistory::update(Lane& lane, const Event& event) {
  std::visit(match{[&](const Released& e) {
                     lane.steps[e.step] = {double(e.push_bits), double(e.pull_bits), event.at};
                   },
                   [&](const Ordered& e) {
                     if (auto* step = lane.steps.find(e.step)) step->local_steps = std::max<std::uint64_t>(e.local_steps, 1);
                   },
                   [&](const ComputeEnded& e) {
                     if (auto* step = lane.steps.find(e.step)) step->ended = event.at;
                   },
                   [&](const Contributed& e) { contributed(lane, e, event.at); }, [&](const Counted& e) { counted(lane, e.step); },
                   [&](const Cancelled& e) { lane.steps.erase(e.step); }, [&](const Discarded& e) { lane.steps.erase(e.step); },
                   [&](const Dropped& e) { lane.steps.erase(e.step); },
                   Ignored<Joined, Left, Leased, ComputeBegan, Applied, Held, Idled, Evaluated, FaultInjected, Finished, Returned,
                           StateEntered, Straggles, Grouped, PartBegan, PartEnded, Committed, Repartitioned>{}},
             event.data);
}

void RunHistory::contributed(Lane& lane, const Contributed& contribution, Instant at) {
  const StepInProgress* const step = lane.steps.find(contribution.step);
  if (step != nullptr) lane.shares.add({seconds(at), contribution.samples, step->push_bits, step->pull_bits, step->local_steps});
}

void RunHistory::counted(Lane& lane, Step step) {
  const StepInProgress* const counted = lane.steps.find(step);
  if (counted == nullptr) return;
  if (ends_.size() < most_parts) ends_.push_back(counted->ended);
  lane.steps.erase(step);
}

void RunHistory::applied(Instant at) {
  if (ends_.size() > 1) {
    const auto [first, last] = std::minmax_element(ends_.begin(), ends_.end());
    finishes_.add({seconds(at), seconds(*last - *first)});
  }
  ends_.clear();
}

std::vector<RunHistory::Worker> RunHistory::workers() const {
  std::vector<Worker> result;
  for (const auto& [worker, lane] : lanes_) result.push_back({lane.node, lane.shares.values()});
  return result;
}

}  // namespace motley::trace
