// The tuned constants of this module: unit, reason, and what half and double of each do where that is known.
#pragma once
#include <cstddef>

namespace motley::store {

// Threads -------------------------------------------------------------------------------------------------------------------------------

/// Values per piece of parallel work: 256 KiB of each array, about 50 microseconds, five times a wake-up; a whole number of cache lines and
/// codec blocks. Half: wake-ups cost twice the share. Double: the last pieces keep fewer threads busy.
inline constexpr std::size_t piece_values = 1U << 16;

/// Threads that saturate the memory bandwidth of the machines measured so far. Half: large models are applied slower there. Double: more
/// idle threads, no speed.
inline constexpr std::size_t max_useful_threads = 8;

/// Values that ShardStore updates before it reports slices as done: enough pieces for every thread. Half: threads idle at the end of each
/// batch. Double: the first slices are sent later.
inline constexpr std::size_t values_per_batch = 16 * piece_values;

// Memory --------------------------------------------------------------------------------------------------------------------------------

/// From this many values on, weights and momentum before and after an update take 64 MiB, more than last-level caches keep until they are
/// read again: they are written with non-temporal stores. Below, such stores would be slower than the cache.
inline constexpr std::size_t non_temporal_values = std::size_t{4} << 20;

/// Values that are rounded to bf16 at a time: 16 KiB of fp32, which stay in the first-level cache until they are rounded.
inline constexpr std::size_t values_per_rounding = 4096;

/// Versions that a WeightStash keeps: gradients up to 16 updates late are compensated, later ones are applied as they are. Half saves
/// memory when workers are that late; double costs it then.
inline constexpr std::size_t max_stashed_versions = 18;

/// Permutations of epochs kept in memory. Workers are at most two epochs apart; with fewer, permutations are recomputed, which costs time
/// only.
inline constexpr std::size_t cached_permutations = 4;

// Layout and timing ---------------------------------------------------------------------------------------------------------------------

/// Seconds by which distances of servers must differ to count: less is the noise of a busy machine.
inline constexpr double equal_distance_s = 0.001;

/// Values: an upper bound of head starts above every model's size that is still a whole number in a double.
inline constexpr double largest_head_start = 1e15;

/// Of a step's work: forward takes one of three passes of equal cost; backward computes gradients of inputs and of weights.
inline constexpr double forward_fraction = 1.0 / 3;

// Training ------------------------------------------------------------------------------------------------------------------------------

/// Control variate (LocalModel): fraction of each round's observation that is added. Observations are noisy and show the effect of a
/// correction two rounds late; larger values oscillate, smaller ones learn the difference later.
inline constexpr double control_variate_gain = 0.1;

/// Control variate: fraction forgotten per round, so that what was learned relative to workers that left fades within some 200 rounds.
inline constexpr double control_variate_decay = 0.005;

/// Gradient clipping of a pipeline stage: a gradient is clipped at this multiple of its moving norm.
inline constexpr double clip_multiple = 1.5;

/// Weight of the past in that moving norm: it averages over about 50 updates.
inline constexpr double clip_norm_decay = 0.98;

}  // namespace motley::store
