#include "trace/state_timelines.h"

#include <algorithm>

#include "base/match.h"

namespace motley::trace {

void StateTimelines::on_event(const Event& event) {
  const double now_s = seconds(event.at);
  last_s_ = std::max(last_s_, now_s);
  if (const auto* update = event.as<Applied>()) applied(*update, now_s);
  if (const auto* state = event.as<StateEntered>()) state_entered(*state, now_s);
  const auto worker = worker_of(event.data);
  if (!worker) return;
  Lane* const lane = event.is<Joined>() ? lanes_.announce(*worker) : lanes_.find(*worker);
  if (lane != nullptr) update(*lane, event, now_s);
}

void StateTimelines::update(Lane& lane, const Event& event, double now_s) {
  std::visit(match{[&](const Joined& e) { joined(lane, e, now_s); }, [&](const Left&) { left(lane, now_s); },
                   [&](const Counted& e) { counted(lane, e); }, [&](const Straggles& e) { straggles(lane, e, now_s); },
                   [&](const Cancelled& e) { cancelled(lane, e, now_s); }, [&](const Discarded& e) { discarded(lane, e, now_s); },
                   [&](const Grouped& e) { grouped(lane, e, now_s); },
                   Ignored<Ordered, Leased, Released, ComputeBegan, ComputeEnded, Contributed, Applied, Held, Dropped, Idled, Evaluated,
                           FaultInjected, Finished, Returned, StateEntered, PartBegan, PartEnded, Committed, Repartitioned>{}},
             event.data);
}

void StateTimelines::joined(Lane& lane, const Joined& joined, double now_s) {
  lane.node = joined.node;
  if (!lane.member) ++members_;
  lane.member = true;
  if (members_ == 1) states_.change(now_s, state_);
}

void StateTimelines::left(Lane& lane, double now_s) {
  lane.straggling.change(now_s, std::nullopt);
  lane.groups.change(now_s, std::nullopt);
  lane.group.reset();
  if (lane.member) --members_;
  lane.member = false;
  if (members_ > 0) return;
  state_ = 0;
  states_.change(now_s, std::nullopt);
}

void StateTimelines::straggles(Lane& lane, const Straggles& change, double now_s) {
  has_states_ = true;
  lane.straggling.change(now_s, change.now ? StateTimeline::Value(change.why) : std::nullopt);
}

void StateTimelines::cancelled(Lane& lane, const Cancelled& step, double now_s) {
  has_states_ = true;
  lane.marks.add({now_s, true, step.why});
  ++lane.cancelled;
}

void StateTimelines::discarded(Lane& lane, const Discarded& step, double now_s) {
  has_states_ = true;
  lane.marks.add({now_s, false, step.why});
  ++lane.discarded;
}

void StateTimelines::grouped(Lane& lane, const Grouped& change, double now_s) {
  has_groups_ = true;
  lane.group = static_cast<std::uint32_t>(std::min<std::uint64_t>(change.group, most_groups - 1));
  lane.groups.change(now_s, lane.group);
}

void StateTimelines::state_entered(const StateEntered& entered, double now_s) {
  has_states_ = true;
  state_ = std::min<std::uint32_t>(entered.state, states_known - 1);
  states_.change(now_s, state_);
}

void StateTimelines::counted(const Lane& lane, const Counted& contribution) {
  Delays& delays = staleness_[state_];
  const std::size_t late = std::min<std::uint64_t>(contribution.staleness, most_delays - 1);
  if (delays.size() <= late) delays.resize(late + 1);
  ++delays[late];
  if (lane.group) weights_[*lane.group] += contribution.weight;
}

void StateTimelines::applied(const Applied& update, double now_s) {
  double whole = 0;
  for (const auto& [group, weight] : weights_) whole += weight;
  const auto most = std::max_element(weights_.begin(), weights_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != weights_.end()) rates_[most->first].add({now_s, update.rate * whole});
  weights_.clear();
}

std::array<double, StateTimelines::states_known> StateTimelines::state_lasted_s() const {
  std::array<double, states_known> result{};
  for (const auto& [state, lasted_s] : states_.lasted(last_s_)) result[state] = lasted_s;
  return result;
}

std::vector<StateTimelines::Worker> StateTimelines::workers() const {
  std::vector<Worker> result;
  for (const auto& [id, lane] : lanes_) {
    Worker& worker = result.emplace_back();
    worker.node = lane.node;
    worker.straggling = lane.straggling.stretches(last_s_);
    worker.groups = lane.groups.stretches(last_s_);
    worker.marks = lane.marks.values();
    for (const auto& [why, lasted_s] : lane.straggling.lasted(last_s_)) worker.straggled_s += lasted_s;
    worker.cancelled = lane.cancelled;
    worker.discarded = lane.discarded;
  }
  return result;
}

std::map<std::uint32_t, std::vector<StateTimelines::Rate>> StateTimelines::rates() const {
  std::map<std::uint32_t, std::vector<Rate>> result;
  for (const auto& [group, kept] : rates_) result[group] = kept.values();
  return result;
}

}  // namespace motley::trace
