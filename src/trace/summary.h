// Statistics of a run, updated with every event: shares of time, staleness, the accuracy curve.
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

/// Seconds that a worker spent in each phase, from joining until it left or the run ended.
///   compute: computing; send: from the end of computing until every server has the contribution or it is refused; receive: from the
///   release until computing begins; wait: the rest (for other workers, for the gate, or without samples)
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
  std::uint64_t held = 0;     // times the gate let it wait
};

class Summary : public Sink {
 public:
  void on_event(const Event& event) override;

  [[nodiscard]] const std::vector<Point>& curve() const { return curve_; }
  /// In order of joining; memberships of one node are apart.
  [[nodiscard]] std::vector<WorkerSummary> workers() const;
  [[nodiscard]] TimeShares time() const;  // all workers together
  static constexpr std::size_t most_late = 65'535;
  /// [k]: contributions of staleness k; the last element counts all later ones.
  [[nodiscard]] const std::vector<std::uint64_t>& staleness() const { return staleness_; }
  /// 1 - (time in send and receive) / (transfer time of contributions and parameters), over all workers. 0: computing hides no transfer.
  [[nodiscard]] double overlap_ratio() const;
  /// (last - first end of computing) / mean compute time, for each update of several parts; the mean over such updates, without the first
  /// fifth of them.
  [[nodiscard]] double finish_spread() const;
  /// Samples that workers did not compute within their time limit.
  [[nodiscard]] std::uint64_t returned() const { return returned_; }
  [[nodiscard]] double ended_s() const { return seconds(last_); }

 private:
  struct Finish {
    Instant began{};
    Instant ended{};
  };
  struct Lane {
    WorkerSummary sums;
    StepsInProgress<Finish> computing;  // begun, not yet complete
    StepsInProgress<Finish> finished;   // complete, not yet counted
  };
  static constexpr std::size_t most_parts = 65'536;  // of an update
  void update(Lane& lane, const Event& event);
  void contributed(Lane& lane, const Contributed& contribution, Instant at);
  void counted(Lane& lane, const Counted& contribution);
  void close_update();

  Activity activity_;
  Members<Lane> lanes_;
  std::vector<Point> curve_;
  std::vector<std::uint64_t> staleness_;
  double transferred_s_ = 0;
  std::vector<Finish> update_;  // parts of the next update
  std::vector<double> spreads_;
  std::uint64_t returned_ = 0;
  Instant last_{};
};

/// When the curve, smoothed over 3 evaluations, first reaches `target`, interpolated linearly; none if it never does.
[[nodiscard]] std::optional<double> time_to_target(const std::vector<Point>& curve, double target);
/// Each point's accuracy and loss become the mean over itself and up to two before it.
[[nodiscard]] std::vector<Point> smoothed(const std::vector<Point>& curve);
/// Point by point over several runs of one job; as long as the shortest.
[[nodiscard]] std::vector<Point> mean_of(const std::vector<std::vector<Point>>& curves);

}  // namespace motley::trace
