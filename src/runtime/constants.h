// The tuned constants of this module: unit, reason, and what half and double of each do where that was measured.
#pragma once
#include <cstddef>

namespace motley::runtime {

// A server's slices
// ------------------------------------------------------------------------------------------------------------------------

/// Pulls that may wait for one worker, each with its snapshot. With overlap two or three wait; a worker that never attaches, or reads
/// nothing, loses the pulls beyond. A bound of memory: its value does not matter for speed.
inline constexpr std::size_t most_waiting_pulls = 16;

/// Slices of a snapshot that an update has just written which are sent before the event loop does anything else; the others follow in
/// batches of as many. There may be hundreds of slices for many workers, and forward needs the first ones first.
inline constexpr std::size_t slices_per_send = 8;

/// Batches of complete slices that may be speculated at a time: one on the store thread and one behind it, so that the store thread never
/// waits for the event loop. More would only delay a commit that waits behind them.
inline constexpr std::size_t batches_speculated = 2;

/// Values per such batch (2 MiB as fp32): enough work for every thread of the pool, little enough that a more urgent slice does not wait
/// long.
inline constexpr std::size_t values_per_speculation = std::size_t{1} << 19U;

/// Bytes that one thread of the pool checks at a time of a slice in a peer's memory: several pieces per slice, so that all threads have
/// work, each long enough to amortise the hand-over.
inline constexpr std::size_t bytes_per_check = std::size_t{256} << 10U;

}  // namespace motley::runtime
