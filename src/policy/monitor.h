// What was measured of each worker: an affine fit t(b) = a + beta*b of its compute time. Decisions read this, never a configured speed.
#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/cost.h"

namespace motley::policy {

/// Least squares over (samples, seconds) in which each older observation weighs 0.9 of the next (the batch form of recursive least squares
/// with forgetting). While the batches seen lie too close together to tell a from beta, a keeps its last known value (0 at first). A device
/// that slows down does so as a whole: when a batch like the last one takes over 1.6 times as long as predicted, or as much less (no jitter
/// does that), everything seen so far is scaled at once, so that what was learned of the proportion of a and beta stays valid. As one more
/// point of the fit it would be taken for overhead. After a change of batch the fit itself may be what is wrong, so then it learns instead.
class SpeedFit {
 public:
  void observe(std::uint32_t samples, Duration compute);
  [[nodiscard]] std::uint64_t observations() const { return observations_; }
  /// Must have been observed. a >= 0, beta > 0.
  [[nodiscard]] cluster::Affine fit() const { return fit_; }

 private:
  [[nodiscard]] bool jumped(double samples, double ratio) const;
  void rescale(double ratio);
  void refit(double b, double t);

  double weight_ = 0, samples_ = 0, squares_ = 0, seconds_ = 0, products_ = 0;  // forgotten sums of 1, b, b*b, t, b*t
  cluster::Affine fit_;
  double last_samples_ = 0;
  std::uint64_t observations_ = 0;
};

class Monitor {
 public:
  void joined(WorkerId worker);
  /// One step of `samples` samples took `compute`.
  void observe(WorkerId worker, std::uint32_t samples, Duration compute);
  [[nodiscard]] const SpeedFit& speed(WorkerId worker) const;

 private:
  std::vector<SpeedFit> fits_;  // by id; who left stays, ids are never used again
};

}  // namespace motley::policy
