// One job in virtual time: joins data, model, strategy and world, runs them, and sums up what happened. Threads may each run their own.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/job.h"
#include "engine/run_result.h"
#include "engine/training.h"
#include "trace/sinks.h"
#include "trace/timeline.h"

namespace motley::engine {

struct SimulationOptions {
  policy::StrategySpec strategy;
  std::string label;  // how the user wrote the strategy
  std::uint64_t seed = 0;
  trace::Sink* also = nullptr;                 // hears everything too
  std::function<void(double share)> progress;  // of all samples; may be empty
};

/// Calls `tell` with the share of samples counted, at every evaluation.
class Progress : public trace::Sink {
 public:
  Progress(std::function<void(double)> tell, std::uint64_t total) : tell_(std::move(tell)), total_(static_cast<double>(total)) {}
  void on_event(const trace::Event& event) override {
    const auto* evaluation = event.as<trace::Evaluated>();
    if (evaluation != nullptr && tell_) tell_(static_cast<double>(evaluation->samples) / total_);
  }

 private:
  std::function<void(double)> tell_;
  double total_;
};

/// A window of five equal-batch steps from where training has settled.
trace::Timeline timeline_window(const config::Job& job, std::uint64_t total_samples);

/// Fails when the strategy or the model cannot be made, or when torch gives up (memory, mostly); a training that went wrong is a result,
/// see ending.why.
Result<RunResult> simulate(const config::Job& job, const Material& material, const SimulationOptions& options);

}  // namespace motley::engine
