// Unrest: notices when training turns for the worse, from what contributions say: the mean loss climbs a fifth above the lowest it has
// been, or gradients are twice as large as they used to be. Moving averages, so that one strange batch says nothing; but three updates in a
// row whose loss is half as high again as the lowest mean are no accident, and what soars must be stopped soon.
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
  /// After each update: true when there is unrest now. Then the measure is taken anew.
  [[nodiscard]] bool updated();
  /// The last unrest was a loss that soared.
  [[nodiscard]] bool spiked() const { return spiked_; }

  void save(StateWriter& state) const;
  void restore(StateReader& state);

 private:
  double samples_ = 0, losses_ = 0, norms_ = 0;  // of the update that is coming together
  std::uint64_t updates_ = 0;                    // that the averages are made of
  double loss_ = 0;                              // moving
  double lowest_loss_ = 0;
  double norm_ = 0;        // moving, fast
  double usual_norm_ = 0;  // moving, slowly
  bool spiked_ = false;
  std::uint32_t updates_spiking_ = 0;  // updates in a row
};

}  // namespace motley::policy
