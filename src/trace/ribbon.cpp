#include "trace/ribbon.h"

#include <algorithm>
#include <utility>

namespace motley::trace {

void Ribbon::turn(double now_s, Value value) {
  if (!turns_.empty()) {
    now_s = std::max(now_s, since_s_);
    if (turns_.back().value == value) return;
    if (turns_.back().value) lasted_[*turns_.back().value] += now_s - since_s_;
  }
  since_s_ = now_s;
  add({now_s, value});
  if (turns_.size() >= most_turns) thin();
}

/// What lasts for no time and what changes nothing leaves no trace.
void Ribbon::add(const Turn& turn) {
  if (!turns_.empty() && turns_.back().at_s == turn.at_s) turns_.pop_back();
  if (turns_.empty() || turns_.back().value != turn.value) turns_.push_back(turn);
}

/// The one turn in the place of two neighbours, of which the second ends at `end_s`.
Ribbon::Turn Ribbon::stronger(const Turn& first, const Turn& second, double end_s) {
  const bool longer = second.at_s - first.at_s >= end_s - second.at_s;
  return {first.at_s, first.value && (longer || !second.value) ? first.value : second.value};
}

/// Coarser only when it must be: a long run of few changes at a time loses none that can be seen.
void Ribbon::thin() {
  for (;; finest_s_ *= 2) {
    const std::vector<Turn> all = std::exchange(turns_, {});
    for (std::size_t i = 0; i < all.size();) {
      const bool pair = i + 2 < all.size() && all[i + 2].at_s - all[i].at_s < finest_s_;
      add(pair ? stronger(all[i], all[i + 1], all[i + 2].at_s) : all[i]);
      i += pair ? 2 : 1;
    }
    if (turns_.size() <= most_turns / 2) return;
  }
}

std::vector<Ribbon::Stretch> Ribbon::stretches(double until_s) const {
  std::vector<Stretch> result;
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    const double end_s = i + 1 < turns_.size() ? turns_[i + 1].at_s : std::max(until_s, turns_[i].at_s);
    if (turns_[i].value) result.push_back({turns_[i].at_s, end_s, *turns_[i].value});
  }
  return result;
}

std::map<std::uint32_t, double> Ribbon::lasted(double until_s) const {
  auto result = lasted_;
  if (!turns_.empty() && turns_.back().value) result[*turns_.back().value] += std::max(until_s - since_s_, 0.0);
  return result;
}

}  // namespace motley::trace
