// What a pipeline's stages did, read from the events: busy time by part, delay, micro-batches held. Idle is what is left.
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
    double to_s = 0;                  // of its last
    std::uint64_t max_in_flight = 0;  // micro-batches between the beginning of forward and the end of the input gradient
    std::uint64_t most_late = 0;      // updates that a forward lacked
  };
  /// One part, for pictures.
  struct Box {
    std::uint32_t stage = 0;
    double from_s = 0;
    double to_s = 0;
    std::uint8_t part = 0;
  };
  /// Boxes of micro-batches [first, last) are kept.
  Pipeline(std::uint64_t first, std::uint64_t last) : first_(first), last_(last) {}

  void on_event(const Event& event) override;
  [[nodiscard]] const std::vector<Stage>& stages() const { return stages_; }
  [[nodiscard]] const std::vector<Box>& boxes() const { return boxes_; }
  /// Busy time of all stages over all their time, from the middle half of the run, where nothing fills or drains.
  [[nodiscard]] double utilization() const;
  /// The same of the stage that is busiest.
  [[nodiscard]] double busiest() const;
  /// When each update was everywhere, from the first that was told on.
  [[nodiscard]] const std::vector<double>& updates_s() const { return updates_s_; }
  /// Updates a second in the middle half of the run.
  [[nodiscard]] double updates_per_second() const;
  /// How often the model was cut anew.
  [[nodiscard]] std::uint64_t repartitions() const { return repartitions_; }

 private:
  static constexpr std::size_t most_stages = 4096;
  static constexpr std::uint64_t parts = 3;
  [[nodiscard]] std::vector<double> busy_shares() const;
  void applied(std::uint64_t version, double at);
  struct Now {
    std::uint8_t part = 0;
    double since_s = 0;
    std::uint64_t held = 0;
  };
  std::uint64_t first_, last_;
  std::vector<Stage> stages_;
  std::vector<Now> now_;
  std::vector<Box> boxes_;
  std::uint64_t updates_before_ = 0;  // those that were never told
  std::vector<double> updates_s_;
  std::uint64_t repartitions_ = 0;
  std::vector<std::vector<std::pair<double, double>>> busy_;  // by stage: when it was busy
};

}  // namespace motley::trace
