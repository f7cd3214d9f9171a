// The tuned constants of the transport: unit, reason, and the effect of half and of double. Limits that a user may set are in options.h.
#pragma once
#include <chrono>
#include <cstddef>

namespace motley::transport {

// -- bulk lane on a stream (bulk_writer.cpp, bulk_reader.h) ---------------------------------------------------------------------------

/// Small bulk messages share one write up to this many bytes. Half: more system calls. Double: an urgent message waits longer.
inline constexpr std::size_t joined_write_bytes = 256 << 10;
/// Bulk messages of one write; each takes two buffers, and Asio passes 64 buffers to one call. Half: more calls. Double: not possible.
inline constexpr std::size_t joined_write_messages = 32;
/// Read ahead of a payload: some hundred announcements. Half: more reads for small slices. Double: more of a large payload is copied twice.
inline constexpr std::size_t read_ahead_bytes = 16 << 10;

// -- bulk lane through shared memory (shared_bulk.cpp) --------------------------------------------------------------------------------

/// Written to the ring before the peer is told. Half: more frames. Double: the peer starts later to copy out while we copy in.
inline constexpr std::size_t ring_piece_bytes = 512 << 10;
/// Slices completed by one write of frames. Half: more writes of small slices. Double: their memory is reported free later.
inline constexpr std::size_t joined_ring_messages = 64;
/// Frames read at once: some hundred. Half: more reads. Double: no effect measured.
inline constexpr std::size_t shared_frame_buffer_bytes = 16 << 10;
/// Segments of one peer mapped here; a correct peer has a few dozen. A bound against a malicious peer only.
inline constexpr std::size_t most_peer_segments = 1024;
/// Accepted sizes of a peer's ring. Bounds against a malicious peer only.
inline constexpr std::size_t smallest_ring_bytes = 4 << 10, largest_ring_bytes = 1 << 30;

// -- control lane (control_lane.cpp) --------------------------------------------------------------------------------------------------

/// Bytes of one read: some hundred messages. Half: more reads under load. Double: no effect measured.
inline constexpr std::size_t control_read_bytes = 16 << 10;

// -- listener (acceptor.cpp, reception.cpp) -------------------------------------------------------------------------------------------

/// Pause after a failed accept. Half: a busier loop while descriptors are short. Double: slower recovery.
inline constexpr std::chrono::milliseconds accept_retry_pause{100};
/// Unauthenticated handshakes use at most 1/this of the process's descriptors, but at least `least_handshakes` are allowed.
/// Half: a flood leaves fewer descriptors for the job. Double: a flood evicts honest handshakes sooner.
inline constexpr std::size_t handshake_descriptor_share = 4, least_handshakes = 8;

// -- shaping (pipe.cpp, shaped.cpp) ---------------------------------------------------------------------------------------------------

/// Depth of the token bucket: an idle time up to this is made up for. Half: late timers lower the rate. Double: longer bursts.
inline constexpr std::chrono::milliseconds pipe_catch_up{2};
/// Receive buffers kept for reuse, about one window of slices. Half: more page faults. Double: more idle memory.
inline constexpr std::size_t most_spare_buffers = 4;

}  // namespace motley::transport
