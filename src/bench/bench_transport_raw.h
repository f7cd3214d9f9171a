// The limit that the transport is held against: bare TCP over loopback, two processes, blocking sockets, nothing parsed.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "bench/bench_transport_child.h"

namespace motley::bench {

/// One buffer goes there and back, in pieces of one size.
struct RawTrip {
  std::size_t piece_bytes{};
  std::size_t pieces{};
  bool at_once{};  // each piece comes back as soon as it is there, while others still go; otherwise all go, then all come back
};

/// A pair of processes for each of `pairs`; those that start a trip are told to by a number and answer with one.
std::vector<std::unique_ptr<Child>> raw_pairs(std::size_t pairs, const RawTrip& trip, std::vector<std::unique_ptr<Child>>& others);

}  // namespace motley::bench
