// Batching `rounds`: local rounds with unequal numbers of steps that end together.
//
// Rule: with an interval of H, all rounds together are H global batches. Worker i gets its share by its measured speed, in
//   H_i = max(1, round(share / b)) local steps of about b = max(64, B/P) samples each (at most B/2 if several share it, less if memory is
//   short): smaller local batches cost accuracy, and time where a step has a fixed cost. The batch evens out the rounding of H_i (and the
//   next batch the rounding to whole samples), so that all rounds end at the same moment. A worker whose last round ended later than the
//   mean by more than a tenth of a round gets a quarter of that excess less in the next one: rounds may overlap, and a worker that is a
//   whole round behind would otherwise stay behind and delay all others. A device with a batch multiple (a GPU, slow at small batches)
//   takes local steps of its share of the global batch where that is more than b, and keeps that size: it takes whole steps more or fewer,
//   and the remainder goes into the next round. With an interval of 1, and until all workers are measured, it is `finish together`.
// One sample changes the model as much as under every other strategy: the local rate is scaled by (sum H_i b_i)^2 / (B sum H_i^2 b_i).
// Guarantee: every batch is at least 1 and fits its worker's memory. Cost: O(P log P) per plan, O(log P) per order.
#pragma once
#include <vector>

#include "policy/batching/balanced_batching.h"

namespace motley::policy {

class RoundBatching : public BatchingPolicy {
 public:
  explicit RoundBatching(std::uint32_t global_batch)
      : global_batch_(global_batch), steps_apart_(global_batch, {.counts_communication = true}) {}
  void joined(std::span<const WorkerProfile> profiles) override;
  void left(WorkerId worker) override;
  void restricted(WorkerId worker, std::uint32_t max_batch) override;
  void applied(std::span<const Contribution> members) override;
  void updated(const Monitor& monitor, const Exposed& exposed) override;
  void interval(std::uint32_t steps) override { interval_ = steps; }
  [[nodiscard]] std::uint32_t batch(WorkerId worker) const override;
  [[nodiscard]] std::uint32_t steps(WorkerId worker) const override;
  [[nodiscard]] double rate_scale() const override { return in_rounds() ? rate_scale_ : 1; }
  [[nodiscard]] double mean_steps() const override { return in_rounds() ? mean_steps_ : 1; }
  [[nodiscard]] double step_s() const override { return in_rounds() ? round_s_ : steps_apart_.step_s(); }

 private:
  struct Share {
    std::uint32_t steps = 1;
    std::uint32_t batch = 1;
  };
  [[nodiscard]] bool in_rounds() const { return interval_ > 1 && !plan_.empty(); }
  void reset_plan();
  double settle_local_batch(std::size_t rank, double share);
  std::uint32_t evened(std::size_t rank, const cluster::Affine& times, double local_batch);
  Share in_usual_steps(std::size_t rank, const cluster::Affine& times);
  [[nodiscard]] double time_for(std::size_t rank) const;

  std::uint32_t global_batch_;
  BalancedBatching steps_apart_;
  BatchAllocator allocator_;
  std::uint32_t interval_ = 1;
  std::vector<Share> plan_;           // by rank; empty: somebody has not been measured, or the interval is 1
  std::vector<double> owed_;          // by rank: samples that rounding has kept back so far
  std::vector<std::uint32_t> usual_;  // by rank, of devices with a batch multiple: samples of a local step; 0: none yet
  std::vector<double> late_;          // by rank: seconds after the mean end of the last round; empty: not known
  double rate_scale_ = 1;
  double mean_steps_ = 1;
  double round_s_ = 0;
};

}  // namespace motley::policy
