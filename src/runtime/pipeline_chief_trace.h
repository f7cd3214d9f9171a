// Writes the trace of a pipeline: stages report what they computed after the fact, so events are held back until every stage has reported
// as far and are then written in the order of their times.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/time.h"
#include "protocol/pipeline_chief.h"
#include "runtime/pipeline_layout.h"
#include "runtime/stage_times.h"
#include "trace/event.h"

namespace motley::runtime {

class PipelineChiefTrace {
 public:
  using Sink = std::function<void(const trace::Event&)>;

  /// `first_mini`: mini-batches that earlier runs have done, in `trained_before`.
  PipelineChiefTrace(Duration trained_before, std::uint64_t first_mini, Sink sink);

  /// Training time of all runs until now: since the first layout.
  [[nodiscard]] Instant trained(Instant now) const;
  [[nodiscard]] bool started() const { return started_.has_value(); }

  /// A layout is assigned. Returns how many mini-batches are lost with the one before and are computed again.
  std::uint64_t assigned(Instant now, const protocol::AssignStages& assignment);
  void allowed(Instant now, std::uint64_t mini_batches) { times_.allow(trained(now), mini_batches, done_); }
  /// A stage reports the parts that it computed. Returns how long it was busy with how many micro-batches.
  struct StageWork {
    double busy_s = 0;
    std::uint64_t micro_batches = 0;
  };
  StageWork committed(Instant now, const wire::Committed& report, std::uint32_t micro_batches);
  void committed_by_all(Instant now, std::uint64_t mini_batches, std::size_t stages);
  void expelled(Instant now, const protocol::StageExpelled& stage);

  /// Writes what every stage has reported as far as.
  void write_reported() { write_until(times_.recorded_until()); }
  /// Writes everything up to the last mini-batch that every stage has committed: a checkpoint refers to it.
  void write_committed() { write_until(done_at_); }
  void write_all() { write_until(Instant::max()); }
  /// At once, whatever is held back.
  void write(const trace::Event& event) { sink_(event); }

  /// Mini-batches that were computed again after losses.
  [[nodiscard]] std::uint64_t computed_again() const { return computed_again_; }
  /// By stage: the most activations and parameters that it kept.
  [[nodiscard]] const std::vector<double>& peak_stash_bytes() const { return peak_stash_bytes_; }

 private:
  void record(Instant at, const trace::EventData& data) { held_events_.emplace(at, trace::Event{at, data}); }
  void write_until(Instant when);

  Duration trained_before_;
  Sink sink_;
  std::optional<Instant> started_;
  StageTimes times_;
  std::multimap<Instant, trace::Event> held_events_;  // bounded: stages report only mini-batches that are allowed
  std::vector<double> peak_stash_bytes_;
  std::uint64_t done_ = 0;  // mini-batches that all stages have committed
  Instant done_at_{};
  std::uint64_t computed_again_ = 0;
};

}  // namespace motley::runtime
