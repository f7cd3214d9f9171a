#include "trace/state_timeline.h"

#include <algorithm>
#include <utility>

namespace motley::trace {

void StateTimeline::change(double now_s, Value value) {
  if (!changes_.empty()) {
    now_s = std::max(now_s, since_s_);
    if (changes_.back().value == value) return;
    if (changes_.back().value) lasted_[*changes_.back().value] += now_s - since_s_;
  }
  since_s_ = now_s;
  add({now_s, value});
  if (changes_.size() >= max_changes) thin();
}

/// Drops values that last for no time and changes to the same value.
void StateTimeline::add(const Change& change) {
  if (!changes_.empty() && changes_.back().at_s == change.at_s) changes_.pop_back();
  if (changes_.empty() || changes_.back().value != change.value) changes_.push_back(change);
}

/// The one change that replaces two neighbours, of which the second ends at `end_s`.
StateTimeline::Change StateTimeline::stronger(const Change& first, const Change& second, double end_s) {
  const bool longer = second.at_s - first.at_s >= end_s - second.at_s;
  return {first.at_s, first.value && (longer || !second.value) ? first.value : second.value};
}

/// Doubles the resolution only as often as needed, so that rare changes stay visible.
void StateTimeline::thin() {
  for (;; finest_s_ *= 2) {
    const std::vector<Change> all = std::exchange(changes_, {});
    for (std::size_t i = 0; i < all.size();) {
      const bool pair = i + 2 < all.size() && all[i + 2].at_s - all[i].at_s < finest_s_;
      add(pair ? stronger(all[i], all[i + 1], all[i + 2].at_s) : all[i]);
      i += pair ? 2 : 1;
    }
    if (changes_.size() <= max_changes / 2) return;
  }
}

std::vector<StateTimeline::Stretch> StateTimeline::stretches(double until_s) const {
  std::vector<Stretch> result;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const double end_s = i + 1 < changes_.size() ? changes_[i + 1].at_s : std::max(until_s, changes_[i].at_s);
    if (changes_[i].value) result.push_back({changes_[i].at_s, end_s, *changes_[i].value});
  }
  return result;
}

std::map<std::uint32_t, double> StateTimeline::lasted(double until_s) const {
  auto result = lasted_;
  if (!changes_.empty() && changes_.back().value) result[*changes_.back().value] += std::max(until_s - since_s_, 0.0);
  return result;
}

}  // namespace motley::trace
