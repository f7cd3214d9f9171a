// Intervals: how many steps, each of a global batch over all workers, are taken locally before everyone contributes. `fixed`: always the
// same number.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "policy/saved_state.h"

namespace motley::policy {

/// One update of local rounds, as far as an interval learns from it.
struct RoundStats {
  Version version;        // that it made
  double spread = 0;      // sum of p_i |delta_i|^2
  double loss = 0;        // mean over its samples
  double progress = 0;    // of training, after it
  double granted = 0;     // the same, with what is under way
  double batch = 0;       // a global batch, as a part of training
  double rate = 0;        // learning rate
  double step_s = 0;      // that a global batch is computed for by all; 0: not known
  double transfer_s = 0;  // that a contribution and new parameters travel, the longest of the workers; 0: not known
};

class Interval {
 public:
  virtual ~Interval() = default;
  [[nodiscard]] virtual std::uint32_t steps() const = 0;
  /// Nobody goes on before everyone's contributions have come back: rounds do not overlap now.
  [[nodiscard]] virtual bool is_sequential() const { return false; }
  virtual void updated(const RoundStats&) {}
  /// Workers are to tell how far the global model has moved.
  [[nodiscard]] virtual bool wants_update_norm() const { return false; }
  /// A worker has seen the update that made `version`: its squared norm.
  virtual void seen(Version /*version*/, double /*moved*/) {}
  /// What a checkpoint must keep of it; restore() reads the same names.
  virtual void save(StateWriter&) const {}
  virtual void restore(StateReader&) {}
};

class IntervalFixed : public Interval {
 public:
  explicit IntervalFixed(std::uint32_t steps = 1) : steps_(steps) {}
  [[nodiscard]] std::uint32_t steps() const override { return steps_; }

 private:
  std::uint32_t steps_;
};

}  // namespace motley::policy
