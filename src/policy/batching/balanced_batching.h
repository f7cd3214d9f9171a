// Load `finish together`: batches from measured speed, so that all workers' steps end at the same moment.
//
// Rule: until every worker has been measured, what each has said of itself, or equal shares. Then cluster::finish_together over the affine
//   fits (and, if wanted, what is exposed of each worker's travel), once at first and again every `replan` updates or when somebody comes
//   or goes; a new plan is adopted when it moves anybody by more than the dead band of 5 %.
// A device with a grain pays for every size that it has never done. A plan that would end at least half a percent sooner (2 % where steps
//   stray from the fit), update after update, is adopted when staying has cost half of what the new sizes will. What such a device does
//   beside computing is not all known (copies, launches, who is served first): where all have a grain and begin their steps together, plans
//   count with how much later or sooner than foretold each contribution came.
// Boxed: each step also ends when the plan says, whether or not it is done. On a steady cluster the limit is a fifth later than planned and
//   is only met by surprises. Where steps stray from the fit by more than 2 %, everyone gets spare samples and stops at the planned moment:
//   jitter moves samples, not time. What was not done goes back to the pool and from there to whoever asks next. A device with a grain does
//   its step at once: it gets no spare, and the limit is one for surprises.
// Guarantee: the batches sum to the global batch, or everyone has what its memory holds; each is at least 1.
// Cost: O(P log P) per plan, O(log P) per order.
#pragma once
#include <vector>

#include "policy/batching/batching_policy.h"

namespace motley::policy {

class BalancedBatching : public BatchingPolicy {
 public:
  struct Options {
    std::uint32_t replan = 1;           // updates between two plans
    bool time_limited = false;          // steps end when planned
    bool counts_communication = false;  // what is exposed of it is part of a step's time
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
  mutable std::vector<std::uint32_t> plan_;  // by rank; empty: equal shares, made when they are first asked for
  std::vector<TimeLimit> time_limits_;       // by rank; empty: none
  double step_s_ = 0;
  bool fresh_ = true;  // membership changed since the last plan from measurements
  std::uint32_t since_plan_ = 0;
  std::vector<double> predicted_s_;         // by rank: how long a step takes from its order until it is contributed
  std::vector<double> systematic_delay_s_;  // by rank: how much longer it really takes, compared with the others; moving
  Instant last_round_{};                    // when the last contribution to the last update had come
  double accumulated_loss_s_ = 0;           // what staying with the plan has cost since it was the best; with grains
};

}  // namespace motley::policy
