// The tuned constants of this module: unit, reason, and what half and double of each do where that was measured.
#pragma once
#include <cstddef>
#include <cstdint>

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

// Buffers -------------------------------------------------------------------------------------------------------------------------------

/// Bytes from which a Buffer's memory is recycled; malloc keeps smaller blocks itself. Half: more idle memory. Double: buffers of medium
/// models are page-faulted anew in every step.
inline constexpr std::size_t pooled_bytes = std::size_t{4} << 20;

/// Idle buffers kept per size: those that one step allocates and frees. Half: page faults in every step. Double: memory only.
inline constexpr std::size_t max_idle_buffers = 4;

/// The same for shared memory, which peers have mapped and pinned for their GPUs: a new block costs them milliseconds.
inline constexpr std::size_t max_idle_shared_buffers = 16;

// Warming up a device -------------------------------------------------------------------------------------------------------------------

/// Steps per batch size at most, and steps in a row that are not faster than warm_up_gain times the fastest before the measurement ends.
/// Other workers may warm up on the same machine, which makes single steps slow.
inline constexpr int warm_up_steps = 20;
inline constexpr int warm_up_steps_without_gain = 4;
inline constexpr double warm_up_gain = 0.97;

/// Largest share of a step's time that is taken as its fixed cost: two batch sizes determine it badly.
inline constexpr double max_fixed_fraction = 0.5;

// Child processes and logs --------------------------------------------------------------------------------------------------------------

/// Lines of a child's output kept for error messages.
inline constexpr std::size_t kept_output_lines = 20;

/// Bytes of an output line; a longer one is cut.
inline constexpr std::size_t longest_output_line = 1 << 16;

/// Lines per second in a LimitedLog: enough to identify the peer, few enough to read and store.
inline constexpr std::uint64_t log_lines_per_second = 10;

}  // namespace motley::runtime
