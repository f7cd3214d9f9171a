#include "trace/state_timelines.h"

#include <algorithm>

namespace motley::trace {

void StateTimelines::on_event(const Event& e) {
  const double now_s = seconds(e.at);
  last_s_ = std::max(last_s_, now_s);
  if (e.kind == Kind::applied) applied(e);
  if (e.kind == Kind::state) {
    has_states_ = true;
    state_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(e.first, states_known - 1));
    states_.change(now_s, state_);
  }
  Lane* const lane = e.kind == Kind::joined ? lanes_.announce(e.worker) : lanes_.find(e.worker);
  if (lane != nullptr) on_event(e, *lane, now_s);
}

void StateTimelines::on_event(const Event& e, Lane& lane, double now_s) {
  switch (e.kind) {
    case Kind::joined: joined(e, lane, now_s); break;
    case Kind::left: left(lane, now_s); break;
    case Kind::counted: counted(e, lane); break;
    case Kind::straggles:
      has_states_ = true;
      lane.straggling.change(now_s, e.first == 1 ? StateTimeline::Value(e.why) : std::nullopt);
      break;
    case Kind::cancelled:
      has_states_ = true;
      lane.marks.add({now_s, true, e.why});
      ++lane.cancelled;
      break;
    case Kind::discarded:
      has_states_ = true;
      lane.marks.add({now_s, false, e.why});
      ++lane.discarded;
      break;
    case Kind::grouped:
      has_groups_ = true;
      lane.group = static_cast<std::uint32_t>(std::min(e.first, most_groups - 1));
      lane.groups.change(now_s, lane.group);
      break;
    default: break;  // the rest says nothing about this
  }
}

void StateTimelines::joined(const Event& e, Lane& lane, double now_s) {
  lane.node = static_cast<std::uint32_t>(e.first);
  if (!lane.here) ++here_;
  lane.here = true;
  if (here_ == 1) states_.change(now_s, state_);
}

void StateTimelines::left(Lane& lane, double now_s) {
  lane.straggling.change(now_s, std::nullopt);
  lane.groups.change(now_s, std::nullopt);
  lane.group.reset();
  if (lane.here) --here_;
  lane.here = false;
  if (here_ > 0) return;
  state_ = 0;
  states_.change(now_s, std::nullopt);
}

void StateTimelines::counted(const Event& e, const Lane& lane) {
  Delays& delays = staleness_[state_];
  const std::size_t late = std::min<std::uint64_t>(e.last, most_delays - 1);
  if (delays.size() <= late) delays.resize(late + 1);
  ++delays[late];
  if (lane.group) weights_[*lane.group] += e.value;
}

void StateTimelines::applied(const Event& e) {
  double whole = 0;
  for (const auto& [group, weight] : weights_) whole += weight;
  const auto most = std::max_element(weights_.begin(), weights_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != weights_.end()) rates_[most->first].add({seconds(e.at), e.value * whole});
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
