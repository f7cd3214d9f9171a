// Which bulk lane two peers use, agreed on over its stream as soon as both have proven the token: shared memory between processes of one
// user over a unix socket, the stream itself everywhere else. Symmetric: both ends say the same things.
//
//   offer := 0:u16 | 8:u16 process:u32 ring_bytes:u32        with its first byte goes the descriptor of the ring (segment.h)
//   met   := 0:u8 | 1:u8        after two offers that are not empty: whether the other's memory was taken
//
// The peer is not believed: the kernel says whose process is connected (SO_PEERCRED), and what the descriptor is. Who fails is left to the
// stream. Over TCP nothing is offered and no descriptor can come. Shared memory never leaves the host, so there is nothing to encrypt.
#pragma once
#include <memory>

#include "base/result.h"
#include "transport/bulk_lane.h"
#include "transport/options.h"
#include "transport/stream.h"

namespace motley::transport {

/// Takes the stream's bytes up to the end of the agreement, then the stream. Fails when the peer breaks off, and when Options::bulk asks
/// for what cannot be had. Deadlines are the caller's, as for a handshake.
asio::awaitable<Result<std::shared_ptr<BulkLane>>> agree_on_bulk(Stream& stream, const Options& options);

}  // namespace motley::transport
