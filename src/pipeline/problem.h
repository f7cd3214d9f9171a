// A network to be cut across devices, as data: what each block takes, what each device and link can do, and what a cut of it costs. Used by
// planner, schedules and simulator alike. Times are seconds of one micro-batch.
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
  double input_s = 0;   // backward, the gradient of what it read
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
  std::optional<std::size_t> uplink = {};  // what lies between it and devices of another one, or of none
};

/// What all devices of one place (a host, a rack) share on their way to others.
struct Uplink {
  double up_bytes_per_second = 0;
  double down_bytes_per_second = 0;
};

/// What lies between two devices, one way; the other way, and those to others, are apart from it but for uplinks.
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

/// What a stage keeps: values, gradient, momentum and one version more of its parameters, and what `held` micro-batches leave.
[[nodiscard]] double stage_bytes(double parameter_bytes, double kept_bytes, std::uint32_t held);

/// What one micro-batch takes on a stage, all three parts.
[[nodiscard]] inline double stage_s(const Device& device, double work_s) { return device.overhead_s + work_s / device.speed; }

/// What a cut costs.
struct Cost {
  std::vector<double> stage_s;      // of one micro-batch, all three parts
  std::vector<double> link_s;       // from each stage but the last to the next, the longer way; with what others send over its uplinks
  std::vector<double> bytes;        // of memory, by stage
  double slot_s = 0;                // the slowest of all those: one micro-batch comes out in this time at best
  double alone_s = 0;               // the same if no uplink were shared
  std::vector<std::uint32_t> full;  // stages that do not fit their device's memory
};
[[nodiscard]] Cost cost_of(const Problem& problem, const Cut& cut);

/// What each part of one micro-batch takes on a stage: forward, gradient of inputs, gradient of weights.
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

/// Seconds that block `last - 1`'s output travels from device to device, or its gradient back, whichever takes longer.
[[nodiscard]] double link_s(const Problem& problem, std::uint32_t last, std::uint32_t from, std::uint32_t to);

}  // namespace motley::pipeline
