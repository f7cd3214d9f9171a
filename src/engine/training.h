// Training: layout, strategy, schedule and limits of a job, for the simulator and for real processes alike.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "config/job.h"
#include "learn/learner.h"
#include "policy/lr_schedule.h"
#include "policy/strategy.h"
#include "protocol/chief.h"
#include "store/epochs.h"
#include "store/layer_timing.h"
#include "store/layout.h"
#include "store/replica.h"

namespace motley::engine {

/// Data shared by all runs of one job; loaded once.
struct Material {
  std::shared_ptr<const learn::DataSet> data;  // none: timing only
  std::uint64_t epoch_samples = 0;
  store::Shards shards;  // of the samples, when each node has its own classes
};
/// The names of the registered models, data sets and losses (learn/registry.h).
[[nodiscard]] config::KnownKinds known_kinds();

Result<Material> load_material(const config::Job& job);

struct Training {
  std::unique_ptr<learn::Learner> learning;  // none: timing only
  policy::Strategy strategy;
  policy::LrSchedule schedule;
  protocol::ChiefOptions chief;
  store::Layout layout;
  store::LayerTiming layer_timing;  // of emulated and simulated devices; empty: they do not stream
  store::ReplicaOptions replica;
  std::vector<std::uint32_t> max_batch;  // by node, as its memory allows; 0: no limit
  double sum_of_parts = 0;               // samples per second
};

/// Fails when strategy and model cannot be made, the model does not fit the servers, or a node cannot hold a single sample.
Result<Training> make_training(const config::Job& job, const Material& material, const policy::StrategySpec& spec);

}  // namespace motley::engine
