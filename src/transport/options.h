// Options of connections and listeners, with units. Both ends may differ except in token and job.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "wire/message.h"

namespace motley::transport {

using JobHash = std::array<std::byte, 32>;

/// For a worker or server that joins before it knows the job: accepted by any listener whose token it knows.
inline constexpr JobHash any_job{};

/// The kind of bulk lane. `automatic`: shared memory between processes of one user over a unix socket, the stream everywhere else.
enum class Bulk : std::uint8_t { automatic, tcp, shared };

struct Options {
  std::string token{};  // the job's shared secret; without a token only loopback addresses are allowed
  JobHash job{};        // equal at both ends, unless the client connects with any_job; opaque here

  std::size_t slice_bytes = 1 << 20;              // the usual payload; bounds how many bytes wait unsent in the kernel
  std::size_t window_bytes = wire::window_bytes;  // payload bytes that a peer may have in flight to us; at least two slices, so that
                                                  // granting credit overlaps receiving
  Bulk bulk = Bulk::automatic;       // `tcp` also stands for a unix socket; `shared` fails where shared memory is not available
  std::size_t ring_bytes = 2 << 20;  // of shared memory for payloads to one peer: a few pieces, small enough to stay in a cache
  std::size_t largest_payload_bytes = 256 << 20;  // larger announcements are refused
  std::size_t control_queue_bytes = 64 << 20;
  std::size_t bulk_messages = 1 << 16;  // waiting on the bulk lane
  std::uint32_t overtakes = 64;         // more urgent messages that may overtake the oldest waiting one

  std::chrono::milliseconds handshake_time{5'000};  // from accept, or from connect, until both lanes are up
  std::size_t handshakes = 256;             // in progress at one listener: this many without a proof of the token, and as many with one
  std::chrono::milliseconds linger{2'000};  // how long a close() waits for the peer to take the last messages
};

}  // namespace motley::transport
