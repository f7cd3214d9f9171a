// Interval `adaptive`: as many local steps as hide the wire, more while the workers agree and the loss falls, fewer when they part.
//
// Rule: H = clamp(max(H_base, H_hide), 1, 32), H_hide = how many steps a contribution and new parameters travel for. H_base begins at 12.
//   Agreement psi = sum p_i|delta_i|^2 / |sum p_i delta_i|^2 of an update, against 1.5 times its own moving mean (0.9): never against the
//   number of workers, since noise alone makes psi near that. A jump halves H_base. While there is none and the loss falls, H_base goes by
//   one every 8 rounds, up or down, towards 12 * sqrt(loss / first loss) * first rate / rate: shorter as the loss flattens, longer as the
//   rate decays. Nothing is judged in the first 5 % of training, where losses and agreement change faster than any mean of them. In the
//   first 1 % and the last .5 % nobody goes on before everyone's contributions are back: the first round is a single step, since nobody's
//   speed is known and far from a minimum models part fastest, the next are up to 4 times as long as what was walked so far; the last one
//   is cut so that everything is in when training ends.
// A number of steps that the user has given takes the place of all that; beginning and end stay.
// Guarantee: between 1 and 32 steps, or as many as the user has given. Cost: O(1) per update.
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
  double cap_ = 1;  // steps: what was walked so far allows no more, or the end comes
  bool sequential_ = true;
  double agreement_ = 0;  // psi, moving mean; 0: none yet
  double first_loss_ = 0, loss_ = 0, slow_loss_ = 0;
  double first_rate_ = 0, rate_ = 0;
  std::uint32_t rounds_since_change_ = 0;  // rounds since it last changed
  struct Spread {
    Version version;
    double spread = 0;
  };
  std::deque<Spread> spreads_;  // of updates that nobody has told the norm of yet
};

}  // namespace motley::policy
