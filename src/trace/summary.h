// A run in numbers, made while the events come in: shares of time, staleness, the accuracy curve. Reads events alone and knows no strategy.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "trace/activity.h"
#include "trace/event.h"
#include "trace/members.h"

namespace motley::trace {

/// One evaluation of the global model.
struct Point {
  double time_s = 0;
  std::uint64_t samples = 0;
  double accuracy = 0;
  double loss = 0;
};

/// Where a worker's time went, from joining to the end or its leaving, in seconds.
///   compute: computing; send: from computed until every server has it (or it is refused); receive: from released until it computes;
///   wait: everything else (others' work, a closed gate, nothing left to do)
struct TimeShares {
  double compute_s = 0;
  double send_s = 0;
  double receive_s = 0;
  double wait_s = 0;
  [[nodiscard]] double total() const { return compute_s + send_s + receive_s + wait_s; }
};

struct WorkerSummary {
  std::uint32_t node = 0;
  TimeShares time;
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;  // counted
  std::uint64_t held = 0;     // times it had to wait for others
};

class Summary : public Sink {
 public:
  void on_event(const Event& event) override;

  [[nodiscard]] const std::vector<Point>& curve() const { return curve_; }
  /// In order of joining; memberships of one node are apart.
  [[nodiscard]] std::vector<WorkerSummary> workers() const;
  [[nodiscard]] TimeShares time() const;  // all workers together
  static constexpr std::size_t most_late = 65'535;
  /// [k]: contributions applied k versions late; the last of all gathers those that were later.
  [[nodiscard]] const std::vector<std::uint64_t>& staleness() const { return staleness_; }
  /// 1 - exposed / total time that contributions and parameters travelled, over all workers. 0 when nothing is hidden under computing.
  [[nodiscard]] double overlap_ratio() const;
  /// Of updates with several parts: (last - first end of computing) / mean time of computing. Mean over all such updates after the first
  /// fifth.
  [[nodiscard]] double finish_spread() const;
  /// Samples that their worker had no time for and that went to others.
  [[nodiscard]] std::uint64_t returned() const { return returned_; }
  [[nodiscard]] double ended_s() const { return seconds(last_); }

 private:
  struct Finish {
    Instant began{};
    Instant ended{};
  };
  struct Lane {
    WorkerSummary sums;
    StepsUnderWay<Finish> computing;  // begun, not yet complete
    StepsUnderWay<Finish> finished;   // complete, not yet counted
  };
  static constexpr std::size_t most_parts = 65'536;  // of an update
  void on_event(const Event& event, Lane& lane);
  void close_update();

  Activity activity_;
  Members<Lane> lanes_;
  std::vector<Point> curve_;
  std::vector<std::uint64_t> staleness_;
  double transferred_s_ = 0;
  std::vector<Finish> update_;  // parts of the update being told
  std::vector<double> spreads_;
  std::uint64_t returned_ = 0;
  Instant last_{};
};

/// When a curve smoothed over 3 evaluations first reaches `target`, between evaluations by straight line; none when it never does.
[[nodiscard]] std::optional<double> time_to_target(const std::vector<Point>& curve, double target);
/// Each point's accuracy and loss become the mean over itself and up to two before it.
[[nodiscard]] std::vector<Point> smoothed(const std::vector<Point>& curve);
/// Point by point over several runs of one job; as long as the shortest.
[[nodiscard]] std::vector<Point> mean_of(const std::vector<std::vector<Point>>& curves);

}  // namespace motley::trace
