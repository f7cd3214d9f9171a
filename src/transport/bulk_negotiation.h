// Negotiates the kind of bulk lane over its stream, once both peers have proven the token: shared memory between processes of one user
// over a unix socket, the stream itself in every other case. Both ends send the same messages.
//
//   offer    := 0:u16 | 8:u16 process:u32 ring_bytes:u32     the descriptor of the ring (segment.h) is passed with its first byte
//   accepted := 0:u8 | 1:u8     after two offers that are not empty: whether this end mapped the other's memory
//
// The peer is not trusted: the kernel says which process is connected (SO_PEERCRED) and what the descriptor is; when a check fails, the
// lane uses the stream. Over TCP nothing is offered and no descriptor can arrive. Shared memory never leaves the host: no encryption.
#pragma once
#include <memory>

#include "base/result.h"
#include "transport/bulk_lane.h"
#include "transport/options.h"
#include "transport/stream.h"

namespace motley::transport {

/// Reads the stream up to the end of the negotiation, then moves it into the lane. Fails when the peer disconnects, and when Options::bulk
/// requires shared memory that is not available. The caller sets a deadline, as for a handshake.
asio::awaitable<Result<std::shared_ptr<BulkLane>>> negotiate_bulk(Stream& stream, const Options& options);

}  // namespace motley::transport
