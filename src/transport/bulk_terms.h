// Which bulk lane two peers use, agreed on over its stream as soon as both have proven the token: shared memory where both can map the
// other's, the stream itself everywhere else. Symmetric: both ends say the same things.
//
//   offer := 0:u16 | length:u16 ring_bytes:u32 mark:16 key: length bytes        an empty one has no more to say
//   met   := 0:u8 | 1:u8        after two offers that are not empty: whether the other's memory was found, with its mark in it
//
// Shared memory never leaves the host, so there is nothing to encrypt.
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
