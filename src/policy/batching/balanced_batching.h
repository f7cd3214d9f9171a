// Batching `finish together`: batches by measured speed, so that all workers' steps end at the same moment.
//
// Rule: until every worker has been measured, shares follow the costs that the devices have measured themselves, or are equal. Then
//   cluster::finish_together over the affine fits (and, if wanted, the exposed part of each worker's transfers), at once and again every
//   `replan` updates or after a change of membership; a new plan is adopted when it changes some batch by more than the dead band of 5 %.
// A device with a batch multiple pays for every batch size that it has not used. A plan that would end at least half a percent sooner (2 %
//   where step times vary), update after update, is adopted once the old plan has lost half of the cost of the new sizes. Such a device
//   spends time beside computing that is not known in advance (copies, launches, the order in which workers are served): if all have a
//   batch multiple and begin their steps together, plans include the systematic delay of each contribution against its prediction.
// Time limits: each step also ends when the plan says, done or not. On a steady cluster the limit is a fifth later than planned and stops
//   only outliers. Where step times vary by more than 2 %, every worker gets spare samples and stops at the planned moment, so that jitter
//   changes samples and not time. Samples that were not done return to the pool. A device with a batch multiple runs its step in one
//   piece: it gets no spare samples, and its limit is that for outliers.
// Guarantee: the batches sum to the global batch, or every worker has the most that its memory holds; each is at least 1.
// Cost: O(P log P) per plan, O(log P) per order.
#pragma once
#include <vector>

#include "policy/batching/batching_policy.h"

namespace motley::policy {

class BalancedBatching : public BatchingPolicy {
 public:
  struct Options {
    std::uint32_t replan = 1;           // updates between two plans
    bool time_limited = false;          // steps end at the planned time
    bool counts_communication = false;  // the exposed part of it belongs to a step's time
  };
  BalancedBatching(std::uint32_t global_batch, const Options& options) : global_batch_(global_batch), options_(options) {}
  void joined(std::span<const WorkerProfile> profiles) override;
  void left(WorkerId worker) override;
  void restricted(WorkerId worker, std::uint32_t max_batch) override;
  void updated(const Monitor& monitor, const Exposed& exposed) override;
  void applied(std::span<const Contribution> members) override;
  [[nodiscard]] std::uint32_t batch(WorkerId worker) const override;
  [[nodiscard]] TimeLimit time_limit(WorkerId worker) const override;
  [[nodiscard]] double step_s() const override { return step_s_; }

 private:
  struct Device {
    cluster::Affine with_communication;
    double exposed = 0;
    double jitter = 0;
  };
  void start_over();
  [[nodiscard]] cluster::Affine cautious(WorkerId worker, const cluster::Affine& fit) const;
  [[nodiscard]] const std::vector<std::uint32_t>& plan() const;
  [[nodiscard]] bool worth_replanning(const std::vector<std::uint32_t>& plan, const std::vector<cluster::Affine>& times,
                                      const Monitor& monitor);
  [[nodiscard]] bool outside_dead_band(const std::vector<std::uint32_t>& plan) const;
  void make_plan(const std::vector<Device>& devices, const Monitor& monitor);
  void make_time_limits(const std::vector<Device>& devices);

  std::uint32_t global_batch_;
  Options options_;
  BatchAllocator allocator_;
  mutable std::vector<std::uint32_t> plan_;  // by rank; empty: the first shares, made on demand
  std::vector<TimeLimit> time_limits_;       // by rank; empty: none
  double step_s_ = 0;
  bool fresh_ = true;  // membership changed since the last plan from measurements
  std::uint32_t since_plan_ = 0;
  std::vector<double> predicted_s_;         // by rank: from the order of a step to its contribution
  std::vector<double> systematic_delay_s_;  // by rank: how much longer it takes than predicted, compared with the others; moving mean
  Instant last_round_{};                    // arrival of the last contribution to the last update
  double accumulated_loss_s_ = 0;           // loss since another plan became better; for batch multiples
};

}  // namespace motley::policy
