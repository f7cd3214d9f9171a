// Entries of a sink for each worker or stage that has joined. Ids of a damaged trace file are arbitrary, so no id is used as an index: only
// members that have joined have an entry, and the number of entries is bounded.
#pragma once
#include <cstddef>
#include <map>

#include "base/ids.h"

namespace motley::trace {

template <class T>
class Members {
 public:
  static constexpr std::size_t max_entries = 65'536;  // memberships of one run: one a second for 18 hours

  /// The entry of a joining worker, made when it is missing. Null when the bound is reached.
  T* announce(WorkerId worker) { return entries_.size() < max_entries || entries_.contains(worker) ? &entries_[worker] : nullptr; }
  /// Null for a worker that never joined.
  [[nodiscard]] T* find(WorkerId worker) {
    const auto found = entries_.find(worker);
    return found == entries_.end() ? nullptr : &found->second;
  }
  void erase(WorkerId worker) { entries_.erase(worker); }
  void clear() { entries_.clear(); }

  /// In order of ids, which is that of joining.
  [[nodiscard]] auto begin() { return entries_.begin(); }
  [[nodiscard]] auto end() { return entries_.end(); }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  std::map<WorkerId, T> entries_;
};

/// Entries for a worker's steps in progress. A worker has a few; beyond the bound the oldest are dropped.
template <class T>
class StepsInProgress {
 public:
  static constexpr std::size_t max_steps = 64;

  T& operator[](Step step) {
    if (steps_.size() >= max_steps && !steps_.contains(step)) steps_.erase(steps_.begin());
    return steps_[step];
  }
  [[nodiscard]] T* find(Step step) {
    const auto found = steps_.find(step);
    return found == steps_.end() ? nullptr : &found->second;
  }
  void erase(Step step) { steps_.erase(step); }

 private:
  std::map<Step, T> steps_;
};

}  // namespace motley::trace
