// A strategy: a batching policy, a gate, a rule, an interval and a communication policy that work together. The chief uses this class alone
// of the module.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "policy/batching/batching_policy.h"
#include "policy/communication/communication_policy.h"
#include "policy/decisions.h"
#include "policy/gate/gate.h"
#include "policy/interval/interval.h"
#include "policy/monitor.h"
#include "policy/rule/rule.h"
#include "policy/worker_set.h"

namespace motley::policy {

/// The mechanisms of one strategy, and its settings that belong to none of them.
struct Mechanisms {
  std::unique_ptr<BatchingPolicy> batching;
  std::unique_ptr<Gate> gate;
  std::unique_ptr<Rule> rule;
  std::unique_ptr<Interval> interval = std::make_unique<IntervalFixed>();
  std::unique_ptr<CommunicationPolicy> communication = std::make_unique<FixedCommunication>();
  std::uint32_t lookahead_terms = 1;  // powers of momentum in rho without staleness; overlap adds one per step
  double momentum = 0.9;              // of the optimizer, for updates and for rho
  double correction = 0;              // of local models by late parameters: see store/local_model.h
  bool control_variate = false;       // SCAFFOLD control variates in local steps: see store/local_model.h
  Traffic traffic;
  bool user_set_bits = false;  // the bits apply to every worker, whatever its transfers cost
};

/// The plan of a worker's next step. The ledger may grant fewer samples.
struct Plan {
  std::uint32_t samples{};
  std::uint32_t local_steps{};
  Bits bits;
  TimeLimit time_limit;
  double rate_scale = 1;  // of the learning rate of local steps
};

class Strategy {
 public:
  explicit Strategy(Mechanisms mechanisms);

  /// New workers that join together. Ids ascend and were never used before.
  void joined(Instant now, std::span<const WorkerProfile> profiles, Decisions& out);
  void left(Instant now, WorkerId worker, Decisions& out);
  /// The worker was sent an order of this many samples.
  void ordered(Instant now, WorkerId worker, std::uint32_t samples);
  /// The ledger had no samples for the worker.
  void idled(Instant now, WorkerId worker, Decisions& out) { m_.gate->idled(now, worker, out); }
  /// A contribution is complete on every server.
  void contributed(Instant now, const Contribution& contribution, Decisions& out);
  /// The chief refused a contribution of the worker: its values are not finite.
  void refused(Instant now, WorkerId worker, Decisions& out) { m_.gate->refused(now, worker, out); }
  void alignment_known(Instant now, const AlignmentTest& which, double alignment, Decisions& out);
  void woken(Instant now, Decisions& out);
  struct TrainingProgress {
    double progress = 0;  // counted samples, as a part of all samples of the training
    double granted = 0;   // the same, including leased samples
    double batch = 0;     // a global batch, as the same part
    double rate = 0;      // the learning rate
  };
  /// An Apply of this strategy was carried out and made `version`.
  void updated(Version version, const TrainingProgress& now);

  [[nodiscard]] Plan plan(WorkerId worker) const;
  void weigh(const Apply& update, std::span<double> weights);
  /// Samples of the update as a part of the global batch.
  [[nodiscard]] double share(const Apply& update) const;
  [[nodiscard]] Payload payload() const { return m_.rule->payload(); }
  [[nodiscard]] double momentum() const;
  /// lambda of this update's delay compensation; 0: none.
  [[nodiscard]] double compensation(const Apply& update) const;
  [[nodiscard]] bool compensates() const { return m_.gate->compensates(); }
  /// All workers are released at the same versions.
  [[nodiscard]] bool in_step() const { return m_.gate->in_step(); }
  /// Steps that a worker may be ahead of the newest parameters.
  [[nodiscard]] std::uint32_t overlap() const { return m_.interval->is_sequential() ? 0 : m_.communication->overlap(); }
  /// The part of its delta that a worker gives up when newer parameters arrive late.
  [[nodiscard]] double correction() const;
  [[nodiscard]] bool control_variate() const { return m_.control_variate; }
  /// Workers report StepReport::update_norm.
  [[nodiscard]] bool tracks_updates() const { return m_.control_variate || m_.interval->wants_update_norm(); }
  /// Local steps of the last update, mean over its members by their weights.
  [[nodiscard]] double mean_steps() const { return last_.steps; }
  /// The state that a checkpoint must keep. Workers join anew after a restart, so it holds nothing about them.
  [[nodiscard]] SavedState save() const;
  /// Fails, and names the value, when `saved` is not what save() returns; the strategy may not be used then.
  [[nodiscard]] Outcome restore(const SavedState& saved);
  /// The look-ahead of this worker's pull, in units of rate*v.
  [[nodiscard]] double rho(WorkerId worker) const;
  /// Workers of one class hold the same values: the same bytes are sent to all of them.
  [[nodiscard]] std::uint32_t pull_class(WorkerId worker) const;

 private:
  [[nodiscard]] Bits bits(WorkerId worker) const;
  [[nodiscard]] CommunicationInputs communication_inputs(const TrainingProgress& now) const;
  [[nodiscard]] double exposed_s(WorkerId worker) const;
  void learn_from_cancelled(const Decisions& out);
  [[nodiscard]] Duration expected(WorkerId worker, std::uint32_t samples) const;
  [[nodiscard]] double gain() const;
  [[nodiscard]] double longest_transfer_s() const;

  Mechanisms m_;
  Monitor monitor_;
  std::uint64_t updates_ = 0;
  WorkerSet worker_set_;
  std::map<WorkerId, cluster::DeviceProfile> devices_;  // of the members
  std::uint64_t since_plan_ = 0;                        // contributions
  double mean_square_ = 0;                              // of a gradient's values, moving; 0: not known yet
  struct Last {                                         // last update: means over its members, by weight
    double spread = 0;
    double loss = 0;
    double steps = 0;
  };
  Last last_;
};

}  // namespace motley::policy
