// Interface of intervals: the number of local steps, each of a global batch over all workers, between two updates. `fixed`: constant.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "policy/saved_state.h"

namespace motley::policy {

/// One update of local rounds, as an interval sees it.
struct RoundStats {
  Version version;        // that it made
  double spread = 0;      // sum of p_i |delta_i|^2
  double loss = 0;        // mean over its samples
  double progress = 0;    // of training, after it
  double granted = 0;     // the same, including samples in progress
  double batch = 0;       // a global batch, as a part of training
  double rate = 0;        // learning rate
  double step_s = 0;      // in which all workers compute a global batch; 0: not known
  double transfer_s = 0;  // longest transfer of a contribution and new parameters, over the workers; 0: not known
};

class Interval {
 public:
  virtual ~Interval() = default;
  [[nodiscard]] virtual std::uint32_t steps() const = 0;
  /// Rounds do not overlap now: no worker continues before all contributions are applied.
  [[nodiscard]] virtual bool is_sequential() const { return false; }
  virtual void updated(const RoundStats&) {}
  /// Workers must report StepReport::update_norm.
  [[nodiscard]] virtual bool wants_update_norm() const { return false; }
  /// A worker has reported the squared norm of the update that made `version`.
  virtual void seen(Version /*version*/, double /*update_norm*/) {}
  /// Writes the state that a checkpoint must keep; restore() reads the same names.
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
