// Progress: since when each worker has had something to do without a contribution coming of it, and how long that may take.
//
// Rule:  expected = the slowest step of this worker lately (0.9 of the one before counts still), more in proportion for a larger step
//        limit    = the least limit, or 10 * expected if that is longer
//        Before its first contribution nothing is known of a worker. Then limit = 10 * the longer one of the least limit and of the
//        slowest step that another worker has had lately; twice as long after each time that this was not enough for somebody, so that
//        an honest slow device is expelled a few times at most.
// All times are those that the chief has seen. What a worker says of itself plays no part, so that it cannot choose its own limit.
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

  /// This worker has something to do: so many samples. Changes nothing while it has something to do already.
  void ordered(Instant now, WorkerId worker, std::uint64_t samples);
  /// Its oldest order is done. `next`: samples of the order behind it, whose time begins now; 0: there is none.
  void done(Instant now, WorkerId worker, std::uint64_t next);
  /// Everything that it had to do was taken back. The time for which it had it stays: whoever hangs hangs in its next order too.
  void taken_back(Instant now, WorkerId worker);
  void left(WorkerId worker) { workers_.erase(worker); }
  /// Somebody of whom nothing was known has taken too long: the next one is given twice the time.
  void unknown_was_overdue();
  void driver_paused(Duration time);

  /// Those who have taken too long, in order of id.
  [[nodiscard]] std::vector<Overdue> overdue(Instant now) const;
  /// The longest time for which somebody has had something to do.
  [[nodiscard]] Duration longest_wait(Instant now) const;

 private:
  struct Worker {
    std::optional<Instant> since;  // that it has something to do
    Duration before{};             // for which it had what was taken back
    std::uint64_t samples = 0;     // of the oldest order
    Duration slowest{};            // lately
    std::uint64_t of_samples = 0;  // in that
  };
  [[nodiscard]] static Duration took(Instant now, const Worker& worker);
  [[nodiscard]] static Duration expected(const Worker& measured, std::uint64_t samples);
  [[nodiscard]] Duration limit(const Worker& worker) const;

  Duration least_;
  double first_ = 1;  // how many times the limit of a first step has become longer
  std::map<WorkerId, Worker> workers_;
};

}  // namespace motley::protocol
