// The tuned constants of the cost model, with their units and sources.
#pragma once
#include <cstdint>

namespace motley::cluster {

/// Samples. A GPU's library chooses its algorithms anew at each batch size, so there should be few sizes; multiples of 8 were too coarse
/// for a small part of a GPU, whose batch they changed by a tenth. At half (2) twice as many sizes are new; at double (8) see above.
inline constexpr std::uint32_t gpu_batch_multiple = 4;

/// Bytes needed for a step, in copies of the parameters: values, gradient, incoming slices, state of the optimizer or of local steps.
inline constexpr std::uint64_t copies_of_parameters = 4;

/// Seconds per byte below which a transfer counts as free: 1 TB/s. Shared memory reports 0, the fastest network link about 1e-11.
inline constexpr double free_transfer_s_per_byte = 1e-12;

/// Of a step. GPUs idle for about a twentieth of it between two steps that do not overlap (docs/results/gpu). Only its being above 0 is
/// used: half and double change no decision.
inline constexpr double idle_share_of_gpu = 0.05;

/// Measured costs of a step outside these bounds (seconds) are not believed: a nanosecond clock cannot have measured them.
inline constexpr double least_fixed_s = 1e-6;
inline constexpr double most_fixed_s = 1e12;
inline constexpr double least_per_sample_s = 1e-12;
inline constexpr double most_per_sample_s = 1e6;

/// Weight of the newest step in the moving mean of the time per sample, from which the size of a time-limited step is chosen. At half a
/// slowdown is followed in about 6 steps instead of 3; at double one jittery step changes the size.
inline constexpr double newest_step_weight = 0.3;

/// A batch size that was used before is preferred if it fills this part of the time limit. At half most of the time is given away; close
/// to 1 nearly every limit leads to a new size, which costs a GPU some 70 ms.
inline constexpr double least_fill_of_known_size = 0.85;

}  // namespace motley::cluster
