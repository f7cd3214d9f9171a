// Load `finish together`: batches from measured speed, so that all workers' steps end at the same moment.
//
// Rule: until every worker has been measured, equal shares. Then cluster::finish_together over the affine fits, once at first and again
//   every `replan` updates or when somebody comes or goes; a new plan is adopted when it moves anybody by more than the dead band of 5 %.
// Guarantee: the batches sum to the global batch, or everyone has what its memory holds; each is at least 1.
// Cost: O(P log P) per plan, O(log P) per order.
#pragma once
#include <vector>

#include "policy/load.h"

namespace motley::policy {

class LoadFinishTogether : public Load {
 public:
  LoadFinishTogether(std::uint32_t global_batch, std::uint32_t replan) : global_batch_(global_batch), replan_(replan) {}
  void joined(std::span<const Newcomer> newcomers) override;
  void left(WorkerId worker) override;
  void updated(const Monitor& monitor) override;
  [[nodiscard]] std::uint32_t batch(WorkerId worker) const override;

 private:
  void start_over();
  [[nodiscard]] const std::vector<std::uint32_t>& plan() const;
  [[nodiscard]] bool outside_dead_band(const std::vector<std::uint32_t>& plan) const;

  std::uint32_t global_batch_;
  std::uint32_t replan_;
  Crew crew_;
  mutable std::vector<std::uint32_t> plan_;  // by rank; empty: equal shares, made when they are first asked for
  bool fresh_ = true;                        // membership changed since the last plan from measurements
  std::uint32_t since_plan_ = 0;
};

}  // namespace motley::policy
