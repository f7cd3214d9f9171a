// The physical limit of the transport: bare TCP over loopback, two processes, blocking sockets, nothing parsed.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "bench/bench_transport_child.h"

namespace motley::bench {

/// One buffer is sent there and back, in pieces of one size.
struct RawTrip {
  std::size_t piece_bytes{};
  std::size_t pieces{};
  bool at_once{};  // each piece is returned as soon as it arrives, while later ones are still sent; otherwise all are sent, then all
                   // returned
};

/// One pair of processes for each of `pairs`; a number starts a trip, and the answer reports its end.
std::vector<std::unique_ptr<Child>> raw_pairs(std::size_t pairs, const RawTrip& trip, std::vector<std::unique_ptr<Child>>& others);

}  // namespace motley::bench
