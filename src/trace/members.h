// What a sink keeps of each worker or stage that was announced. Ids come from outside (a trace file may be damaged), so they index nothing:
// who was not announced has no entry, and there are entries for so many only, whatever their ids.
#pragma once
#include <cstddef>
#include <map>

#include "base/ids.h"

namespace motley::trace {

template <class T>
class Members {
 public:
  static constexpr std::size_t most = 65'536;  // memberships of one run: one a second for 18 hours

  /// The entry of who joins, made when it is missing. Null: there is no room.
  T* announce(WorkerId worker) { return entries_.size() < most || entries_.contains(worker) ? &entries_[worker] : nullptr; }
  /// Null: it was never announced.
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

/// What a sink keeps of the steps that a worker has under way. A worker has a few; of one that never ends any the oldest are forgotten.
template <class T>
class StepsUnderWay {
 public:
  static constexpr std::size_t most = 64;

  T& operator[](Step step) {
    if (steps_.size() >= most && !steps_.contains(step)) steps_.erase(steps_.begin());
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
