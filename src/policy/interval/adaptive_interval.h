// Interval `adaptive`: as many local steps as hide the transfers, more while local models agree and the loss falls, fewer when they differ.
//
// Rule: H = clamp(max(H_base, H_hide), 1, 32), H_hide = the transfer time of a contribution and new parameters, in steps. H_base is 12 at
//   first. Agreement psi = sum p_i|delta_i|^2 / |sum p_i delta_i|^2 of an update is compared with 1.5 times its own moving mean (0.9), not
//   with the number of workers, since noise alone makes psi near that. A jump of psi halves H_base. Without one, while the loss falls,
//   H_base moves by one every 8 rounds towards 12 * sqrt(loss / first loss) * first rate / rate: shorter as the loss flattens, longer as
//   the rate decays. Nothing is judged in the first 5 % of training, where loss and agreement change faster than their means. In the first
//   1 % and the last .5 % rounds do not overlap: the first round is a single step, since no speed is known and models drift apart fastest
//   far from a minimum; the next ones are up to 4 times as long as all before; the last one is cut to the end of training.
// A number of steps set by the user replaces H; the rules for the first and the last part stay.
// Guarantee: between 1 and 32 steps, or as many as the user has set. Cost: O(1) per update.
#pragma once
#include <deque>
#include <optional>

#include "policy/interval/interval.h"

namespace motley::policy {

class IntervalAdaptive : public Interval {
 public:
  explicit IntervalAdaptive(std::optional<std::uint32_t> steps) : fixed_(steps) {}
  [[nodiscard]] std::uint32_t steps() const override;
  [[nodiscard]] bool is_sequential() const override { return sequential_; }
  void updated(const RoundStats& made) override;
  [[nodiscard]] bool wants_update_norm() const override { return !fixed_; }
  void seen(Version version, double update_norm) override;
  void save(StateWriter& state) const override;
  void restore(StateReader& state) override;

 private:
  void update_interval(double agreement);
  [[nodiscard]] double most() const;
  [[nodiscard]] static double cap(const RoundStats& made);

  std::optional<std::uint32_t> fixed_;
  double base_ = 12;
  double hide_ = 1;
  double cap_ = 1;  // steps: the most at the beginning and at the end of training
  bool sequential_ = true;
  double agreement_ = 0;  // psi, moving mean; 0: none yet
  double first_loss_ = 0, loss_ = 0, slow_loss_ = 0;
  double first_rate_ = 0, rate_ = 0;
  std::uint32_t rounds_since_change_ = 0;  // of base_
  struct Spread {
    Version version;
    double spread = 0;
  };
  std::deque<Spread> spreads_;  // of updates whose norm is not reported yet
};

}  // namespace motley::policy
