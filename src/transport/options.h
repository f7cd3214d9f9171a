// What a connection is allowed, with units. Both ends may differ, but for token and job.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "wire/message.h"

namespace motley::transport {

using JobHash = std::array<std::byte, 32>;

/// Of a newcomer that connects: whatever the listener works on. Its token is asked for all the same.
inline constexpr JobHash any_job{};

/// What carries slices. By itself: shared memory between processes of one user over a unix socket, the stream everywhere else.
enum class Bulk : std::uint8_t { automatic, tcp, shared };

struct Options {
  std::string token{};  // the job's shared secret; without one only this machine may connect
  JobHash job{};        // both ends must work on the same job, but for who connects with any_job; opaque here

  std::size_t slice_bytes = 1 << 20;  // the usual payload: how much may wait unsent inside the operating system
  std::size_t window_bytes =
      wire::window_bytes;            // payload that a peer may have under way to us; at least two slices, to overlap the returns
  Bulk bulk = Bulk::automatic;       // tcp also stands for a unix socket, and shared fails where there is no shared memory
  std::size_t ring_bytes = 2 << 20;  // of shared memory for what we send to one peer: some pieces, few enough to stay in a cache
  std::size_t largest_payload_bytes = 256 << 20;  // an announced payload beyond it is a peer's lie
  std::size_t control_queue_bytes = 64 << 20;
  std::size_t bulk_messages = 1 << 16;  // waiting on the bulk lane
  std::uint32_t overtakes = 64;         // so often is the oldest parcel passed by more urgent ones before it goes itself

  std::chrono::milliseconds handshake_time{5'000};  // from accept, or from connect, until both lanes are up
  std::size_t handshakes = 256;                     // under way at one listener, without a proof of the token, and as many with one
  std::chrono::milliseconds linger{2'000};          // how long a close() waits for the peer to take the last messages
};

}  // namespace motley::transport
