// Detects divergence from the contributions of updates: the mean loss is a fifth above its lowest value, or gradients are twice as large as
// usual. Both are moving averages, so that a single outlier has no effect. Three updates in a row whose loss is 1.5 times the lowest mean
// count at once, as a loss that rises so fast must be stopped soon.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "policy/decisions.h"
#include "policy/saved_state.h"

namespace motley::policy {

class DivergenceDetector {
 public:
  void contributed(const Contribution& contribution);
  /// After each update: true when training diverges. The averages then become the new reference.
  [[nodiscard]] bool updated();
  /// The last divergence was a series of loss spikes.
  [[nodiscard]] bool spiked() const { return spiked_; }

  void save(StateWriter& state) const;
  void restore(StateReader& state);

 private:
  double samples_ = 0, losses_ = 0, norms_ = 0;  // sums over the update in progress
  std::uint64_t updates_ = 0;                    // in the averages
  double loss_ = 0;                              // moving
  double lowest_loss_ = 0;
  double norm_ = 0;        // moving, fast
  double usual_norm_ = 0;  // moving, slowly
  bool spiked_ = false;
  std::uint32_t updates_spiking_ = 0;  // in a row
};

}  // namespace motley::policy
