// The partitioning problem as data: cost of each block, speed of each device and link, and the cost of a cut. Used by planner, schedules
// and simulator. Times are seconds of one micro-batch.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace motley::pipeline {

/// One block, for one micro-batch on a device of speed 1.
struct Block {
  std::string name;
  double forward_s = 0;
  double input_s = 0;   // backward, the gradient of its inputs
  double weight_s = 0;  // backward, the gradient of its parameters
  double output_bytes = 0;
  double kept_bytes = 0;  // from its forward until its backward
  double parameter_bytes = 0;
  [[nodiscard]] double work_s() const { return forward_s + input_s + weight_s; }
};

struct Device {
  std::string name;
  double speed = 1;                        // block times are divided by it
  double memory_bytes = 0;                 // 0: no limit
  double overhead_s = 0;                   // of each micro-batch beside its blocks, a third for each part
  std::optional<std::size_t> uplink = {};  // index; to devices of other uplinks or of none
};

/// The connection that all devices of one place (a host, a rack) share to devices elsewhere.
struct Uplink {
  double up_bytes_per_second = 0;
  double down_bytes_per_second = 0;
};

/// The link between two devices in one direction; links share nothing but uplinks.
struct DeviceLink {
  double bytes_per_second = 0;
  double latency_s = 0;
};

struct Problem {
  std::vector<Block> blocks;                   // at least one
  std::vector<Device> devices;                 // at least one
  std::vector<std::vector<DeviceLink>> links;  // [from][to]
  std::vector<Uplink> uplinks;
  std::uint32_t most_stages = 0;  // 0: as many as there are devices and blocks
  /// The most stages that a cut can have.
  [[nodiscard]] std::uint32_t stages() const {
    const auto all = static_cast<std::uint32_t>(std::min(blocks.size(), devices.size()));
    return most_stages == 0 ? all : std::min(all, most_stages);
  }
};

/// Blocks [first, last) on one device.
struct Stage {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint32_t device = 0;
  bool operator==(const Stage&) const = default;
};
using Cut = std::vector<Stage>;  // every block once, in order; every device at most once

/// Memory of a stage: values, gradient, momentum and one more version of its parameters, and the activations of `held` micro-batches.
[[nodiscard]] double stage_bytes(double parameter_bytes, double kept_bytes, std::uint32_t held);

/// Time of one micro-batch on a stage, all three parts.
[[nodiscard]] inline double stage_s(const Device& device, double work_s) { return device.overhead_s + work_s / device.speed; }

/// The cost of a cut.
struct Cost {
  std::vector<double> stage_s;      // of one micro-batch, all three parts
  std::vector<double> link_s;       // from each stage but the last to the next, the slower direction; with all other links over its uplinks
  std::vector<double> bytes;        // of memory, by stage
  double slot_s = 0;                // the slowest of all those: at best one micro-batch is done in this time
  double alone_s = 0;               // the same if no uplink were shared
  std::vector<std::uint32_t> full;  // stages that do not fit their device's memory
};
[[nodiscard]] Cost cost_of(const Problem& problem, const Cut& cut);

/// Time of each part of one micro-batch on a stage: forward, input gradient, weight gradient.
[[nodiscard]] std::vector<double> parts_s(const Problem& problem, const Stage& stage);

/// True when `cut` holds every block exactly once, in order, no device twice, no stage empty.
[[nodiscard]] bool is_valid_cut(const Problem& problem, const Cut& cut);

/// Sums over runs of blocks in O(1).
class Sums {
 public:
  explicit Sums(std::span<const Block> blocks);
  [[nodiscard]] double work_s(std::uint32_t first, std::uint32_t last) const { return work_[last] - work_[first]; }
  [[nodiscard]] double parameter_bytes(std::uint32_t first, std::uint32_t last) const { return parameters_[last] - parameters_[first]; }
  [[nodiscard]] double kept_bytes(std::uint32_t first, std::uint32_t last) const { return kept_[last] - kept_[first]; }

 private:
  std::vector<double> work_, parameters_, kept_;
};

/// Transfer time of block `last - 1`'s output from device to device, or of its gradient back, whichever is longer.
[[nodiscard]] double link_s(const Problem& problem, std::uint32_t last, std::uint32_t from, std::uint32_t to);

}  // namespace motley::pipeline
