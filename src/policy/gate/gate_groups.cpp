#include "policy/gate/gate_groups.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policy/constants.h"

namespace motley::policy {

void GateGroups::joined(Instant now, std::span<const WorkerId> workers, Decisions& out) {
  for (const WorkerId worker : workers) {
    groups_.joined(worker);
    if (places_.size() <= worker.value) places_.resize(worker.value + 1);
  }
  enter(now, workers, 0, out);  // the slowest group: a new worker delays no fast one
}

void GateGroups::enter(Instant now, std::span<const WorkerId> workers, Group group, Decisions& out) {
  GroupState& group_state = group_states_[group];
  if (group_state.members.empty()) {  // starts level with the others
    group_state.updates = 0;
    for (const auto& [other, at_work] : group_states_) group_state.updates = std::max(group_state.updates, at_work.updates);
  }
  for (const WorkerId worker : workers) {
    places_[worker.value].group = group;
    group_state.members.insert(worker);
    out.note.emplace_back(InGroup{worker, group, groups_.count()});
  }
  Decisions mine;
  group_state.gate.joined(now, workers, mine);
  take(now, group_state, mine, out);
}

void GateGroups::left(Instant now, WorkerId worker, Decisions& out) {
  groups_.left(worker);
  leave_group(now, worker, out);
  // Its samples are back in the pool: idle workers of all groups are released.
  for (auto& [group, group_state] : group_states_) {
    Decisions mine;
    group_state.gate.work_returned(mine);
    take(now, group_state, mine, out);
  }
  release_waiting(now, out);
}

void GateGroups::leave_group(Instant now, WorkerId worker, Decisions& out) {
  GroupState& group_state = group_state_of(worker);
  group_state.members.erase(worker);
  group_state.busy -= std::exchange(places_[worker.value].busy, 0);
  std::erase_if(group_state.waiting, [&](const Release& release) { return release.worker == worker; });
  Decisions mine;
  group_state.gate.left(now, worker, mine);
  take(now, group_state, mine, out);
}

void GateGroups::ordered(Instant now, WorkerId worker, Duration expected) {
  if (expected > Duration{0}) step_ = expected;
  places_[worker.value].base = version_;
  ++places_[worker.value].busy;
  ++group_state_of(worker).busy;
  group_state_of(worker).gate.ordered(now, worker, expected);
}

void GateGroups::idled(Instant now, WorkerId worker, Decisions& out) {
  Decisions mine;
  group_state_of(worker).gate.idled(now, worker, mine);
  take(now, group_state_of(worker), mine, out);
  release_waiting(now, out);
}

void GateGroups::done_with_a_step(WorkerId worker) {
  --places_[worker.value].busy;
  --group_state_of(worker).busy;
}

void GateGroups::contributed(Instant now, const Contribution& contribution, Decisions& out) {
  const WorkerId worker = contribution.worker;
  since_update_.push_back(worker);
  done_with_a_step(worker);
  Decisions mine;
  group_state_of(worker).gate.contributed(now, contribution, mine);
  take(now, group_state_of(worker), mine, out);
  change_group_if_due(now, worker, out);
  release_waiting(now, out);
}

void GateGroups::refused(Instant now, WorkerId worker, Decisions& out) {
  done_with_a_step(worker);
  Decisions mine;
  group_state_of(worker).gate.refused(now, worker, mine);
  take(now, group_state_of(worker), mine, out);
  release_waiting(now, out);
}

void GateGroups::updated(const Monitor& monitor) {
  for (const WorkerId worker : since_update_) groups_.measured(worker, monitor);
  since_update_.clear();
}

/// The worker has no step in progress: its old group's round does not wait for it.
void GateGroups::change_group_if_due(Instant now, WorkerId worker, Decisions& out) {
  const Group wanted = groups_.of(worker);
  if (wanted == places_[worker.value].group || places_[worker.value].busy > 0) return;
  std::erase_if(out.release, [&](const Release& release) { return release.worker == worker; });
  std::erase_if(out.hold, [&](const Hold& hold) { return hold.worker == worker; });
  leave_group(now, worker, out);
  enter(now, {&worker, 1}, wanted, out);
}

void GateGroups::take(Instant now, GroupState& group_state, Decisions& mine, Decisions& out) {
  for (Apply& update : mine.apply) {
    ++group_state.updates;
    std::uint64_t made = 0;  // updates by other groups since its oldest step was ordered
    for (const Contribution& member : update.members) made = std::max(made, version_.ahead_of(places_[member.worker.value].base));
    group_state.staleness += grouping::newest_staleness * (static_cast<double>(made) - group_state.staleness);
    version_ = version_.next();
    out.apply.push_back(std::move(update));
  }
  if (!mine.release.empty() && group_state.waiting.empty()) keep_apart(now, group_state);
  for (const Release& release : mine.release) group_state.waiting.push_back(release);
  out.hold.insert(out.hold.end(), mine.hold.begin(), mine.hold.end());
  if (!waits(now, group_state, out)) {
    out.release.insert(out.release.end(), group_state.waiting.begin(), group_state.waiting.end());
    group_state.waiting.clear();
  } else {
    group_state.held = too_far_ahead(group_state) ? Why::ahead_of_slowest : Why::not_its_turn;
    for (const Release& release : mine.release) out.hold.push_back({release.worker, group_state.held, group_state.updates});
  }
}

/// A round is about to begin.
void GateGroups::keep_apart(Instant now, GroupState& group_state) {
  const bool together = std::any_of(group_states_.begin(), group_states_.end(), [&](const auto& entry) {
    return &entry.second != &group_state && entry.second.busy > 0 && now - entry.second.released < step_ / grouping::parts_of_a_step;
  });
  group_state.collisions = together ? group_state.collisions + 1 : 0;
  group_state.released = now;
  if (!rules_.turns || group_state.collisions < grouping::most_collisions) return;
  group_state.collisions = 0;
  group_state.not_before = now + step_ / static_cast<int>(at_work());
  group_state.released = group_state.not_before;
}

/// Only while another group is busy whose update can end the wait.
bool GateGroups::too_far_ahead(const GroupState& group_state) const {
  if (!rules_.hold) return false;
  std::optional<std::uint64_t> slowest;
  for (const auto& [group, other] : group_states_)
    if (&other != &group_state && other.busy > 0) slowest = std::min(slowest.value_or(other.updates), other.updates);
  return slowest && group_state.updates > *slowest + grouping::lead_per_group * at_work();
}

bool GateGroups::waits(Instant now, const GroupState& group_state, Decisions& out) const {
  if (too_far_ahead(group_state)) return true;
  if (now >= group_state.not_before || group_state.waiting.empty()) return false;
  if (!out.wake || group_state.not_before < *out.wake) out.wake = group_state.not_before;
  return true;
}

void GateGroups::release_waiting(Instant now, Decisions& out) {
  for (auto& [group, group_state] : group_states_) {
    if (group_state.waiting.empty() || waits(now, group_state, out)) continue;
    const Why why = group_state.held == Why::not_its_turn ? Why::its_turn : Why::slowest_moved;
    for (const Release& release : group_state.waiting) out.release.push_back({release.worker, why});
    group_state.waiting.clear();
  }
}

std::uint32_t GateGroups::staleness(WorkerId worker) const {
  if (!rules_.look_ahead_more || worker.value >= places_.size()) return 0;
  return static_cast<std::uint32_t>(std::lround(group_states_.at(places_[worker.value].group).staleness));
}

std::uint32_t GateGroups::streams() const { return rules_.rates ? at_work() : 1; }

std::uint32_t GateGroups::at_work() const {
  std::uint32_t count = 0;
  for (const auto& [group, group_state] : group_states_) count += group_state.members.empty() ? 0 : 1;
  return std::max(count, 1U);
}

}  // namespace motley::policy
