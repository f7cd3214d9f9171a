// Which messages a chief accepts from a peer, beyond what wire/permissions.h allows its role: each peer speaks for itself only, in the
// order of its steps, and only about orders that it received. Pure functions.
#pragma once
#include "base/ids.h"
#include "runtime/chief_peer.h"
#include "runtime/server_placement.h"
#include "wire/permissions.h"

namespace motley::runtime {

/// The chief's own state at the time of the message.
struct ChiefFacts {
  const ServerPlacement& servers;
  Version version;  // the newest
};

/// Why the message breaks the protocol; then its connection is closed before the message reaches the chief's machine, the shard or a
/// buffer.
[[nodiscard]] wire::Objection objection(const ChiefPeer& from, wire::Lane lane, const wire::Message& message, const ChiefFacts& facts);

/// The server that a node name such as "server 1" stands for.
[[nodiscard]] std::optional<ServerId> server_named(std::string_view name);

}  // namespace motley::runtime
