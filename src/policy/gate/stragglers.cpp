#include "policy/gate/stragglers.h"

#include <algorithm>
#include <cmath>

#include "policy/constants.h"

namespace motley::policy {
namespace {

Duration times(double factor, Duration duration) { return from_seconds(factor * seconds(duration)); }

}  // namespace

void Stragglers::joined(WorkerId worker) {
  if (members_.size() <= worker.value) members_.resize(worker.value + 1);
  members_[worker.value] = {};
  members_[worker.value].here = true;
  members_[worker.value].commits = most_commits_;
}

void Stragglers::left(WorkerId worker) {
  stop_straggling(members_[worker.value]);
  members_[worker.value].here = false;
  mark(members_[worker.value], false);
}

void Stragglers::began(Instant now, WorkerId worker, Version newest, Duration expected) {
  Member& member = members_[worker.value];
  stop_straggling(member);
  member.in_step = true;
  member.held = newest;
  member.began = now;
  if (expected > Duration{0}) member.expected = expected;
  ++held_[newest];
}

void Stragglers::stopped(WorkerId worker) { stop_straggling(members_[worker.value]); }

void Stragglers::stop_straggling(Member& member) {
  if (!member.in_step) return;
  member.in_step = false;
  const auto held = held_.find(member.held);
  if (--held->second == 0) held_.erase(held);
}

bool Stragglers::contributed(Instant now, WorkerId worker) {
  Member& member = members_[worker.value];
  const Duration took = now - member.began;
  stop_straggling(member);
  most_commits_ = std::max(most_commits_, ++member.commits);
  if (member.expected == Duration{0}) member.expected = took;
  if (!member.straggles) return false;
  member.in_time = took < times(straggling::late, median_) ? member.in_time + 1 : 0;
  if (member.in_time < straggling::enough_in_time) return false;
  member.in_time = 0;
  member.commits = most_commits_;
  mark(member, false);
  return true;
}

void Stragglers::mark(Member& member, bool straggles) {
  if (member.straggles != straggles) straggles ? ++straggling_ : --straggling_;
  member.straggles = straggles;
}

void Stragglers::find_median() {
  scratch_.clear();
  median_ = {};
  for (const Member& member : members_) {
    if (!member.here) continue;
    if (member.expected == Duration{0}) return;  // a worker has not been measured yet
    scratch_.push_back(member.expected);
  }
  if (scratch_.size() < 2) return;
  const auto middle = scratch_.begin() + static_cast<std::ptrdiff_t>((scratch_.size() - 1) / 2);
  std::nth_element(scratch_.begin(), middle, scratch_.end());
  median_ = *middle;
}

Duration Stragglers::takes(Instant now, const Member& member) const { return std::max(member.expected, now - member.began); }

std::optional<Why> Stragglers::classify(Instant now, const Member& member, Version newest) const {
  const Duration takes_now = takes(now, member);
  const bool behind = most_commits_ > member.commits || newest > member.held;
  if (takes_now > times(straggling::very_late, median_)) return Why::very_late;
  if (takes_now > times(straggling::late, median_) && behind) return Why::late_and_behind;
  if (newest.ahead_of(member.held) > threshold_) return Why::version_too_old;
  return std::nullopt;
}

std::vector<Straggles> Stragglers::look(Instant now, Version newest) {
  find_median();
  std::vector<Straggles> found;
  if (median_ == Duration{0}) return found;
  move_threshold(now);
  for (std::uint32_t w = 0; w < members_.size(); ++w) {
    Member& member = members_[w];
    if (!member.here || !member.in_step || member.straggles) continue;
    const auto why = classify(now, member, newest);
    if (!why) continue;
    mark(member, true);
    member.in_time = 0;
    found.push_back({WorkerId{w}, true, *why, seconds(takes(now, member)) / seconds(median_)});
  }
  return found;
}

void Stragglers::move_threshold(Instant now) {
  Duration longest{};
  for (const Member& member : members_)
    if (member.here && member.in_step) longest = std::max(longest, takes(now, member));
  const auto wanted =
      std::clamp(static_cast<std::uint64_t>(seconds(longest) / seconds(median_)), straggling::least_threshold, straggling::most_threshold);
  if (wanted > threshold_) ++threshold_;
  if (wanted < threshold_) --threshold_;
}

std::optional<Instant> Stragglers::next_look(Instant now) const {
  if (median_ == Duration{0}) return std::nullopt;
  std::optional<Instant> next;
  for (std::uint32_t w = 0; w < members_.size(); ++w) {
    const Member& member = members_[w];
    if (!member.here || !member.in_step || member.straggles) continue;
    for (const double factor : {straggling::late, straggling::very_late}) {
      const Instant when = member.began + times(factor, median_) + Duration{1};
      if (when > now && (!next || when < *next)) next = when;
    }
  }
  return next;
}

std::uint64_t Stragglers::gap(Version newest) const { return held_.empty() ? 0 : newest.ahead_of(held_.begin()->first); }

std::uint64_t Stragglers::staleness(WorkerId worker, Version newest) const {
  const Member& member = members_[worker.value];
  return member.in_step ? newest.ahead_of(member.held) : 0;
}

std::uint32_t Stragglers::medians(WorkerId worker) const {
  if (median_ == Duration{0}) return 1;
  const double ratio = seconds(members_[worker.value].expected) / seconds(median_);
  return static_cast<std::uint32_t>(std::clamp(std::round(ratio), 1.0, 1.0 * straggling::most_threshold));
}

Duration Stragglers::remaining(Instant now, WorkerId worker) const {
  const Member& member = members_[worker.value];
  const Duration so_far = now - member.began;
  return so_far < member.expected ? member.expected - so_far : so_far - member.expected;
}

std::vector<WorkerId> Stragglers::older_than(Version version) const {
  std::vector<WorkerId> found;
  if (held_.empty() || held_.begin()->first >= version) return found;
  for (std::uint32_t w = 0; w < members_.size(); ++w)
    if (members_[w].in_step && members_[w].held < version) found.push_back(WorkerId{w});
  return found;
}

}  // namespace motley::policy
