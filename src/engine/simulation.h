// Simulates one job: joins data, model, strategy and simulator, and summarises the run. Each thread may run a simulation of its own.
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
  trace::Sink* also = nullptr;                 // receives every event, too
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

/// A window of five steps of equal batches, after the beginning of training.
trace::Timeline timeline_window(const config::Job& job, std::uint64_t total_samples);

/// Fails when the strategy or the model cannot be made, or when torch fails (mostly for lack of memory). A training that diverged is a
/// result; see RunResult::outcome.
Result<RunResult> simulate(const config::Job& job, const Material& material, const SimulationOptions& options);

}  // namespace motley::engine
