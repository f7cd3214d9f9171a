// motley bench mixed: unlike devices on this machine, each alone (all at once, nothing sent), then together under each strategy. What they
// do together is held against the sum of what they do alone.
#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley::bench {

struct MixedOptions {
  std::vector<int> partitions{40, 30, 20, 10};  // percent of the GPU each; where there is none, an emulated device's samples a second
  std::vector<int> cpus;                        // beside them: threads of each
  std::string model = "resnet18";
  std::string precision = "bf16";
  std::vector<std::string> strategies{"bsp", "lb-bsp", "hps", "multistep", "adaptive", "grouped"};
  std::uint32_t global_batch = 1024;
  double seconds = 10;  // of each measurement
  bool emulated = false;
  std::vector<std::string> overrides;  // of the job, as --set has them
  std::string keep;                    // a folder in which each strategy's run stays, by its name; empty: none does
};

/// {partitions, alone, sum_of_parts, strategies: [{strategy, samples_per_second, ratio, exposed_comm_share, ...}]}
Result<boost::json::object> bench_mixed(const MixedOptions& asked);

/// What the children of bench_mixed() do: steps of `batch` samples by themselves, as node `name` of the job, until killed. Prints a line
/// with the clock and all samples so far every quarter of a second.
Outcome compute_alone(const std::string& job_file, const std::string& name, std::uint32_t batch);

}  // namespace motley::bench
