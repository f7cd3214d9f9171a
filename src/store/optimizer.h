// The update rules, on flat spans: SGD with momentum and weight decay, AdamW. Elementwise, so that any cut into slices gives the same bits.
// Learning rates are arguments: schedules and warm-up are decided elsewhere.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/optimizer_spec.h"
#include "base/processor.h"
#include "store/floats.h"
#include "store/kernels.h"

namespace motley::store {

/// State and rule for `count` values. SGD:   v = mu*v + (g + wd*w);  w -= rate*v
///                                  AdamW: m, u moving moments of g with bias correction;  w -= rate*(m^/(sqrt(u^)+eps) + wd*w)
/// All arithmetic is in float, one fixed order per value; constants are rounded to float once; every target leaves the same bits.
/// One owner thread; other threads may update pieces that do not overlap.
/// Cost of an update: sgd reads 12 and writes 8 bytes per value, adamw 16 and 12; each further addend of a sum is 4 more to read.
class Optimizer {
 public:
  Optimizer(const OptimizerSpec& spec, std::size_t count, Target target = widest_target());

  /// One update in place. `momentum` replaces the spec's for this update (strategies may adjust it; adamw has none and ignores it).
  /// `share` is the fraction of a global batch that the gradient is computed on. Terms that do not scale with the gradient (weight decay;
  /// the whole step of adamw) are scaled by it, so that many small updates equal one large one. All spans have `count` values.
  void update(std::span<float> weights, std::span<const float> gradient, double rate, double momentum, double share = 1);

  /// The same update in pieces, whose gradient may be a weighted sum that is computed in the same pass: begin_update() once, then
  /// update_piece() until every value has been covered exactly once. A piece covers values [first, first + weights.size()).
  void begin_update() { ++updates_; }
  void update_piece(std::size_t first, std::span<float> weights, std::span<const float> gradient, double rate, double momentum,
                    double share = 1);
  void update_piece(std::size_t first, std::span<float> weights, const Sum& gradient, double rate, double momentum, double share);

  /// follow(), update_piece() and look_ahead() of a piece in one pass: reads `before` and the state of `other`, writes `weights`, this
  /// state and `out` (the weights looked ahead by `look_ahead_rate`). All spans begin with value `first`.
  struct UpdateAndLookAhead {
    double rate = 0, momentum = 0, share = 1;
    double look_ahead_rate = 0;  // rho * rate
    bool non_temporal = false;   // see Kernels::sgd_update_and_look_ahead
  };
  void update_piece_of(const Optimizer& other, std::size_t first, std::span<const float> before, std::span<float> weights,
                       const Sum& gradient, const UpdateAndLookAhead& how, std::span<float> out);

  /// An update that leaves the momentum unchanged. sgd: w -= rate/(1-mu) * (g + wd*share*w), as far as g would move w over time through v;
  /// adamw: w -= rate * (g/(sqrt(u^)+eps) + wd*share*w). Requires an earlier update.
  void update_piece_bypassing_momentum(std::size_t first, std::span<float> weights, std::span<const float> gradient, double rate,
                                       double momentum, double share) const;
  void update_piece_bypassing_momentum(std::size_t first, std::span<float> weights, const Sum& gradient, double rate, double momentum,
                                       double share) const;

  /// out = w - rho*rate*d where d is the direction the next update would take without a new gradient (sgd: v; adamw: m^/(sqrt(u^)+eps)).
  /// Before the first update d is 0. Both spans cover values [first, first + out.size()).
  void look_ahead(std::span<const float> weights, double rho, double rate, std::span<float> out, std::size_t first = 0) const;

  /// Multiplies the momentum of values [first, last) by `factor`.
  void scale_momentum(std::size_t first, std::size_t last, double factor);

  /// Copies the number of updates of another optimizer with the same spec; with a range, its state of values [first, first + count).
  void follow(const Optimizer& other) { updates_ = other.updates_; }
  void follow(const Optimizer& other, std::size_t first, std::size_t count);

  [[nodiscard]] std::span<const float> first() const { return first_; }    // v or m
  [[nodiscard]] std::span<const float> second() const { return second_; }  // u; empty for sgd
  [[nodiscard]] std::uint64_t updates() const { return updates_; }
  /// Sets the state. `second` is empty for sgd.
  void restore(std::span<const float> first, std::span<const float> second, std::uint64_t updates);

 private:
  void require_held(std::size_t first, std::size_t count) const;

  OptimizerSpec spec_;
  const Kernels* kernels_;
  Floats first_;
  Floats second_;
  std::uint64_t updates_ = 0;
};

}  // namespace motley::store
