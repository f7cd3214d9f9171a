#include "policy/gate_groups.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace motley::policy {
namespace {

constexpr std::uint64_t lead_per_group = 4;  // updates
constexpr double staleness_forgetting = 0.1;

}  // namespace

void GateGroups::joined(Instant now, std::span<const WorkerId> workers, Decisions& out) {
  for (const WorkerId worker : workers) {
    groups_.joined(worker);
    if (places_.size() <= worker.value) places_.resize(worker.value + 1);
  }
  enter(now, workers, 0, out);  // the slowest: a newcomer keeps nobody waiting who is in a hurry
}

void GateGroups::enter(Instant now, std::span<const WorkerId> workers, Group group, Decisions& out) {
  Lane& lane = lanes_[group];
  if (lane.members.empty()) {  // level with the others
    lane.updates = 0;
    for (const auto& [other, at_work] : lanes_) lane.updates = std::max(lane.updates, at_work.updates);
  }
  for (const WorkerId worker : workers) {
    places_[worker.value].group = group;
    lane.members.insert(worker);
    out.note.emplace_back(InGroup{worker, group, groups_.count()});
  }
  Decisions mine;
  lane.gate.joined(now, workers, mine);
  take(now, lane, mine, out);
}

void GateGroups::left(Instant now, WorkerId worker, Decisions& out) {
  groups_.left(worker);
  leave_lane(now, worker, out);
  // Its samples are back in the pool: whoever rests, in whatever group, is called.
  for (auto& [group, lane] : lanes_) {
    Decisions mine;
    lane.gate.work_returned(mine);
    take(now, lane, mine, out);
  }
  let_go(now, out);
}

void GateGroups::leave_lane(Instant now, WorkerId worker, Decisions& out) {
  Lane& lane = lane_of(worker);
  lane.members.erase(worker);
  lane.busy -= std::exchange(places_[worker.value].busy, 0);
  std::erase_if(lane.waiting, [&](const Release& release) { return release.worker == worker; });
  Decisions mine;
  lane.gate.left(now, worker, mine);
  take(now, lane, mine, out);
}

void GateGroups::ordered(Instant now, WorkerId worker, Duration expected) {
  if (expected > Duration{0}) step_ = expected;
  places_[worker.value].base = version_;
  ++places_[worker.value].busy;
  ++lane_of(worker).busy;
  lane_of(worker).gate.ordered(now, worker, expected);
}

void GateGroups::rested(Instant now, WorkerId worker, Decisions& out) {
  Decisions mine;
  lane_of(worker).gate.rested(now, worker, mine);
  take(now, lane_of(worker), mine, out);
  let_go(now, out);
}

void GateGroups::done_with_a_step(WorkerId worker) {
  --places_[worker.value].busy;
  --lane_of(worker).busy;
}

void GateGroups::contributed(Instant now, const Contribution& contribution, Decisions& out) {
  const WorkerId worker = contribution.worker;
  since_update_.push_back(worker);
  done_with_a_step(worker);
  Decisions mine;
  lane_of(worker).gate.contributed(now, contribution, mine);
  take(now, lane_of(worker), mine, out);
  go_over_if_due(now, worker, out);
  let_go(now, out);
}

void GateGroups::refused(Instant now, WorkerId worker, Decisions& out) {
  done_with_a_step(worker);
  Decisions mine;
  lane_of(worker).gate.refused(now, worker, mine);
  take(now, lane_of(worker), mine, out);
  let_go(now, out);
}

void GateGroups::updated(const Monitor& monitor) {
  for (const WorkerId worker : since_update_) groups_.measured(worker, monitor);
  since_update_.clear();
}

/// It has contributed and owes nothing: its old group's round does not need it any more.
void GateGroups::go_over_if_due(Instant now, WorkerId worker, Decisions& out) {
  const Group wanted = groups_.of(worker);
  if (wanted == places_[worker.value].group || places_[worker.value].busy > 0) return;
  std::erase_if(out.release, [&](const Release& release) { return release.worker == worker; });
  std::erase_if(out.hold, [&](const Hold& hold) { return hold.worker == worker; });
  leave_lane(now, worker, out);
  enter(now, {&worker, 1}, wanted, out);
}

void GateGroups::take(Instant now, Lane& lane, Decisions& mine, Decisions& out) {
  for (Apply& update : mine.apply) {
    ++lane.updates;
    std::uint64_t made = 0;  // by others, since its oldest member was sent out
    for (const Contribution& member : update.members) made = std::max(made, version_.ahead_of(places_[member.worker.value].base));
    lane.staleness += staleness_forgetting * (static_cast<double>(made) - lane.staleness);
    version_ = version_.next();
    out.apply.push_back(std::move(update));
  }
  if (!mine.release.empty() && lane.waiting.empty()) keep_apart(now, lane);
  for (const Release& release : mine.release) lane.waiting.push_back(release);
  out.hold.insert(out.hold.end(), mine.hold.begin(), mine.hold.end());
  if (!waits(now, lane, out)) {
    out.release.insert(out.release.end(), lane.waiting.begin(), lane.waiting.end());
    lane.waiting.clear();
  } else {
    lane.held = too_far_ahead(lane) ? Why::ahead_of_slowest : Why::not_its_turn;
    for (const Release& release : mine.release) out.hold.push_back({release.worker, lane.held, lane.updates});
  }
}

/// A round is about to begin.
void GateGroups::keep_apart(Instant now, Lane& lane) {
  constexpr int parts_of_a_step = 6;  // values travel for less than this, usually
  constexpr std::uint32_t most_collisions = 3;
  const bool together = std::any_of(lanes_.begin(), lanes_.end(), [&](const auto& entry) {
    return &entry.second != &lane && entry.second.busy > 0 && now - entry.second.released < step_ / parts_of_a_step;
  });
  lane.collisions = together ? lane.collisions + 1 : 0;
  lane.released = now;
  if (!rules_.turns || lane.collisions < most_collisions) return;
  lane.collisions = 0;
  lane.not_before = now + step_ / static_cast<int>(at_work());
  lane.released = lane.not_before;
}

/// Only while somebody else is at work whose update can end the wait.
bool GateGroups::too_far_ahead(const Lane& lane) const {
  if (!rules_.hold) return false;
  std::optional<std::uint64_t> slowest;
  for (const auto& [group, other] : lanes_)
    if (&other != &lane && other.busy > 0) slowest = std::min(slowest.value_or(other.updates), other.updates);
  return slowest && lane.updates > *slowest + lead_per_group * at_work();
}

bool GateGroups::waits(Instant now, const Lane& lane, Decisions& out) const {
  if (too_far_ahead(lane)) return true;
  if (now >= lane.not_before || lane.waiting.empty()) return false;
  if (!out.wake || lane.not_before < *out.wake) out.wake = lane.not_before;
  return true;
}

void GateGroups::let_go(Instant now, Decisions& out) {
  for (auto& [group, lane] : lanes_) {
    if (lane.waiting.empty() || waits(now, lane, out)) continue;
    const Why why = lane.held == Why::not_its_turn ? Why::its_turn : Why::slowest_moved;
    for (const Release& release : lane.waiting) out.release.push_back({release.worker, why});
    lane.waiting.clear();
  }
}

std::uint32_t GateGroups::staleness(WorkerId worker) const {
  if (!rules_.foresee || worker.value >= places_.size()) return 0;
  return static_cast<std::uint32_t>(std::lround(lanes_.at(places_[worker.value].group).staleness));
}

std::uint32_t GateGroups::streams() const { return rules_.rates ? at_work() : 1; }

std::uint32_t GateGroups::at_work() const {
  std::uint32_t count = 0;
  for (const auto& [group, lane] : lanes_) count += lane.members.empty() ? 0 : 1;
  return std::max(count, 1U);
}

}  // namespace motley::policy
