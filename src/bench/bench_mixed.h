// motley bench mixed: measures unlike devices of this machine, first each alone (all at once, without communication), then together under
// each strategy, and compares the throughput with the sum of the parts.
#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley::bench {

struct MixedOptions {
  std::vector<int> partitions{40, 30, 20, 10};  // percent of the GPU each; without a GPU, samples/s of emulated devices
  std::vector<int> cpus;                        // additional CPU workers: threads of each
  std::string model = "resnet18";
  std::string precision = "bf16";
  std::vector<std::string> strategies{"bsp", "lb-bsp", "hps", "multistep", "adaptive", "grouped"};
  std::uint32_t global_batch = 1024;
  double seconds = 10;  // of each measurement
  bool emulated = false;
  std::vector<std::string> overrides;  // of the job, as for --set
  std::string keep;                    // folder that keeps each strategy's run under its name; empty: runs are deleted
};

/// {partitions, alone, sum_of_parts, strategies: [{strategy, samples_per_second, ratio, exposed_comm_share, ...}]}
Result<boost::json::object> bench_mixed(const MixedOptions& asked);

/// Runs in the child processes of bench_mixed(): computes steps of `batch` samples as node `name` of the job until killed. Every quarter of
/// a second it prints the clock and the number of samples so far.
Outcome compute_alone(const std::string& job_file, const std::string& name, std::uint32_t batch);

}  // namespace motley::bench
