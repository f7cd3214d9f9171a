// The set of present workers and whether each is busy, for gates and batch allocation. Ordered by id, so that decisions never depend on
// hashing.
#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace motley::policy {

class WorkerSet {
 public:
  void join(WorkerId worker);
  /// Returns whether the worker was busy.
  bool leave(WorkerId worker);
  void set_busy(WorkerId worker, bool busy);
  [[nodiscard]] bool present(WorkerId worker) const;
  [[nodiscard]] bool busy(WorkerId worker) const;
  [[nodiscard]] std::size_t busy_count() const { return busy_count_; }
  [[nodiscard]] const std::vector<WorkerId>& workers() const { return workers_; }  // ascending
  /// Position in workers(). The worker must be present. O(log P).
  [[nodiscard]] std::size_t rank(WorkerId worker) const;

 private:
  enum class State : std::uint8_t { outside, idle, busy };
  std::vector<State> states_;  // by id
  std::vector<WorkerId> workers_;
  std::size_t busy_count_ = 0;
};

}  // namespace motley::policy
