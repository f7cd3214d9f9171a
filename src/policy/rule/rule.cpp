#include "policy/rule/rule.h"

#include <algorithm>

#include "policy/constants.h"

namespace motley::policy {

void RuleMean::weigh(std::span<const Contribution> members, std::span<double> weights) {
  for (std::size_t i = 0; i < members.size(); ++i) weights[i] = members[i].report.samples / global_batch_;
}

double RuleMean::share(std::span<const Contribution> members) const {
  double samples = 0;
  for (const Contribution& member : members) samples += member.report.samples;
  return samples / global_batch_;
}

void RuleModelMean::weigh(std::span<const Contribution> members, std::span<double> weights) {
  double sum = 0;
  for (const Contribution& member : members) sum += member.report.samples;
  for (std::size_t i = 0; i < members.size(); ++i) weights[i] = members[i].report.samples / sum;
}

void RuleClipped::weigh(std::span<const Contribution> members, std::span<double> weights) {
  inner_->weigh(members, weights);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const double norm = members[i].report.norm();
    if (norm <= 0) continue;
    if (moving_norm_ == 0) moving_norm_ = norm;
    const double scale = std::min(1.0, multiple_ * moving_norm_ / norm);
    weights[i] *= scale;
    // The clipped norm: one outlier does not raise the limit for the next.
    moving_norm_ = clipping::forgetting * moving_norm_ + clipping::newest * scale * norm;
  }
}

void RuleClipped::save(StateWriter& state) const {
  state.number("rule.moving_norm", moving_norm_);
  inner_->save(state);
}

void RuleClipped::restore(StateReader& state) {
  moving_norm_ = state.number("rule.moving_norm");
  inner_->restore(state);
}

}  // namespace motley::policy
