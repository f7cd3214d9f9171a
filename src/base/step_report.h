// The result of one training step, as one struct from the device through the worker, the wire and the chief to the strategy. Each layer
// fills the fields that it knows and passes the rest on.
#pragma once
#include <boost/describe.hpp>
#include <cmath>
#include <cstdint>

#include "base/time.h"

namespace motley {

struct StepReport {
  std::uint32_t samples = 0;      // the first of the lease; fewer than all only when the step's time was limited
  std::uint32_t local_steps = 1;  // among which the samples were divided
  double loss_sum = 0;            // over the samples
  double squared_norm = 0;        // of the gradient or delta, over the parameters
  bool finite = true;             // no value is NaN, infinite or too large to be applied (base/finite.h)
  Duration compute{};             // without waiting for parameters
  Duration pull{};                // from the order until the last slice of parameters arrived; 0: they were there before the order
  double residual = 0;            // rounding error of the previous contribution, relative to it: |e| / |p|
  std::uint32_t max_batch = 0;    // the largest batch of one step, as an out-of-memory error has shown; 0: no such error
  double update_norm = 0;         // squared norm of the update that made the base version, as the worker saw it; 0: not known
  Duration stalled{};             // waiting for parameters after the first of them arrived; not part of `compute`
  bool new_batch_size = false;    // the device's first step of this batch size, which takes longer

  [[nodiscard]] double mean_loss() const { return samples == 0 ? 0 : loss_sum / samples; }
  [[nodiscard]] double norm() const { return std::sqrt(squared_norm); }
};
BOOST_DESCRIBE_STRUCT(StepReport, (),
                      (samples, local_steps, loss_sum, squared_norm, finite, compute, pull, residual, max_batch, update_norm, stalled,
                       new_batch_size))

}  // namespace motley
