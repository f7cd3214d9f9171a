// The costs of one worker's steps and transfers. A worker reports them once, in its Hello; strategies know nothing else about its hardware.
// The extra time of a new batch size is not part of it: the monitor measures that (StepReport::new_batch_size).
#pragma once
#include <boost/describe.hpp>
#include <cstdint>

#include "cluster/affine.h"

namespace motley::cluster {

/// Stands for a cost that is not known before the worker's first steps.
inline constexpr double not_measured = -1;

struct DeviceProfile {
  Affine cost{};                              // of a step, measured by the device before it joined; per_sample = 0: not measured
  std::uint32_t max_batch = 0;                // samples of one step that fit in its memory; 0: no limit
  std::uint32_t batch_multiple = 1;           // steps are fastest at a multiple of this many samples; above 1, a step runs as one piece
  double transfer_s_per_byte = not_measured;  // between the worker and its servers; 0: they share memory
  std::uint32_t bytes_per_value = 4;          // of gradients and parameters that are sent without coding; 2: it computes in bf16

  [[nodiscard]] bool measured() const { return cost.per_sample > 0; }
  /// Fewer bits per value would save no time.
  [[nodiscard]] bool free_transfers() const;
  /// The part of a step for which the device idles until its host starts the next one, when steps do not overlap.
  [[nodiscard]] double idle_share() const;
};
BOOST_DESCRIBE_STRUCT(DeviceProfile, (), (cost, max_batch, batch_multiple, transfer_s_per_byte, bytes_per_value))

/// The profile as far as it is plausible: a worker may send anything. Measurements out of range count as not measured.
[[nodiscard]] DeviceProfile plausible(DeviceProfile reported);

}  // namespace motley::cluster
