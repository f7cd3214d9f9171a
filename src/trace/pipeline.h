// Statistics of a pipeline from its events: busy time of each stage by part, delay of updates, micro-batches held. A stage is idle in the
// rest of its time.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "trace/event.h"

namespace motley::trace {

class Pipeline : public Sink {
 public:
  struct Stage {
    std::uint32_t node = 0;
    std::array<double, 3> busy_s{};   // forward, input gradient, weight gradient
    double to_s = 0;                  // end of its last part
    std::uint64_t max_in_flight = 0;  // micro-batches between the beginning of forward and the end of the input gradient
    std::uint64_t most_late = 0;      // updates that a forward lacked
  };
  /// One part of one micro-batch, for charts.
  struct Box {
    std::uint32_t stage = 0;
    double from_s = 0;
    double to_s = 0;
    std::uint8_t part = 0;
  };
  /// Keeps boxes of micro-batches [first, last).
  Pipeline(std::uint64_t first, std::uint64_t last) : first_(first), last_(last) {}

  void on_event(const Event& event) override;
  [[nodiscard]] const std::vector<Stage>& stages() const { return stages_; }
  [[nodiscard]] const std::vector<Box>& boxes() const { return boxes_; }
  /// Mean share of time in which stages are busy, in the middle half of the run, where the pipeline neither fills nor drains.
  [[nodiscard]] double utilization() const;
  /// The same of the busiest stage.
  [[nodiscard]] double busiest() const;
  /// When each update was applied on every stage, from the first one recorded.
  [[nodiscard]] const std::vector<double>& updates_s() const { return updates_s_; }
  /// Updates a second in the middle half of the run.
  [[nodiscard]] double updates_per_second() const;
  /// Number of new partitions of the model.
  [[nodiscard]] std::uint64_t repartitions() const { return repartitions_; }

 private:
  static constexpr std::size_t most_stages = 4096;
  static constexpr std::uint64_t parts = 3;
  struct Now {
    std::uint8_t part = 0;
    double since_s = 0;
    std::uint64_t held = 0;
  };
  void joined(const Joined& joined);
  void applied(std::uint64_t version, double at_s);
  void repartitioned(const Repartitioned& layout);
  void part_began(const PartBegan& began, double at_s);
  void part_ended(const PartEnded& ended, double at_s);
  [[nodiscard]] bool is_stage(WorkerId stage) const { return stage.value < stages_.size(); }
  [[nodiscard]] std::vector<double> busy_shares() const;

  std::uint64_t first_, last_;
  std::vector<Stage> stages_;
  std::vector<Now> now_;
  std::vector<Box> boxes_;
  std::uint64_t updates_before_ = 0;  // not recorded
  std::vector<double> updates_s_;
  std::uint64_t repartitions_ = 0;
  std::vector<std::vector<std::pair<double, double>>> busy_;  // by stage: begin and end of each part, seconds
};

}  // namespace motley::trace
