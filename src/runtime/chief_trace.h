// Writes the trace of a training: gives events their time since the first order and nodes their numbers, and holds events back while the
// outcome is not known.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/spec.h"
#include "protocol/training_outcome.h"
#include "trace/event.h"

namespace motley::runtime {

class ChiefTrace {
 public:
  using Sink = std::function<void(const trace::Event&)>;

  /// `trained_before`: training time of the runs that this one continues.
  ChiefTrace(const cluster::Spec& cluster, Duration trained_before, Sink sink);

  /// The first order is sent: training time begins. Later calls change nothing.
  void start(Instant now);
  /// An event that happened at `at`, by the clock of this process.
  void record(Instant at, const trace::EventData& data);
  /// Training time of all runs until now.
  [[nodiscard]] Instant trained(Instant now) const;

  /// Events from now on are written after the outcome, which depends on the evaluation of the last model.
  void hold_back() { held_back_ = !outcome_recorded_; }
  /// Writes the outcome, then the events held back. Later calls change nothing.
  void record_outcome(const protocol::TrainingOutcome& outcome);

  /// The number of a node in the trace: its index in the job, or the next free number for a name that the job does not have.
  [[nodiscard]] std::uint32_t node_index(const std::string& name, std::optional<NodeId> node);
  /// By number.
  [[nodiscard]] const std::vector<std::string>& node_names() const { return node_names_; }

 private:
  Duration trained_before_;
  Sink sink_;
  std::vector<std::string> node_names_;
  std::optional<Instant> started_;
  bool held_back_ = false;
  bool outcome_recorded_ = false;
  std::vector<trace::Event> held_events_;
};

}  // namespace motley::runtime
