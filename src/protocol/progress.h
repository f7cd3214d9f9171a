// Progress: since when each worker has had an order without a contribution, and how long that may take.
//
// Rule:  expected = the slowest recent step of this worker (decaying by 0.9 per step), scaled up for a larger step
//        limit    = the least limit, or 10 * expected if that is longer
//        Before a worker's first contribution, limit = 10 * the longer one of the least limit and the slowest recent step of any other
//        worker; doubled each time that a worker exceeded it, so that a correct but slow device is expelled a few times at most.
// All times are observations of the chief. Times reported by workers are not used, so that a worker cannot choose its own limit.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace motley::protocol {

struct Overdue {
  WorkerId worker;
  Duration took{};      // so far
  Duration expected{};  // 0: it has never contributed
};

class Progress {
 public:
  explicit Progress(Duration least) : least_(least) {}

  /// This worker has an order of so many samples. No effect while it has an earlier one.
  void ordered(Instant now, WorkerId worker, std::uint64_t samples);
  /// Its oldest order is done. `next`: samples of the following order, whose time begins now; 0: none.
  void done(Instant now, WorkerId worker, std::uint64_t next);
  /// All its orders were cancelled. The time spent on them still counts, because a hung device hangs in the next order too.
  void taken_back(Instant now, WorkerId worker);
  void left(WorkerId worker) { workers_.erase(worker); }
  /// A worker without any contribution has exceeded its limit: the next one gets twice the time.
  void unknown_was_overdue();
  void driver_paused(Duration time);

  /// The workers beyond their limit, in order of id.
  [[nodiscard]] std::vector<Overdue> overdue(Instant now) const;
  /// The longest time that any worker has had its order.
  [[nodiscard]] Duration longest_wait(Instant now) const;

 private:
  struct Worker {
    std::optional<Instant> since;  // the time at which its order began
    Duration before{};             // time spent on cancelled orders
    std::uint64_t samples = 0;     // of the oldest order
    Duration slowest{};            // recent steps
    std::uint64_t of_samples = 0;  // samples of that step
  };
  [[nodiscard]] static Duration took(Instant now, const Worker& worker);
  [[nodiscard]] static Duration expected(const Worker& measured, std::uint64_t samples);
  [[nodiscard]] Duration limit(const Worker& worker) const;

  Duration least_;
  double first_ = 1;  // factor by which the limit of a first step has grown
  std::map<WorkerId, Worker> workers_;
};

}  // namespace motley::protocol
