// The sender or receiver of a message. Before it is admitted a worker has no id; it is identified by its connection (`pending`), which the
// driver numbers.
#pragma once
#include <compare>
#include <cstdint>

#include "base/ids.h"
#include "wire/message.h"

namespace motley::protocol {

enum class Role : std::uint8_t { chief, server, worker, pending };

struct Peer {
  Role role{};
  std::uint32_t id{};
  auto operator<=>(const Peer&) const = default;
};

inline constexpr Peer the_chief{Role::chief, 0};
inline Peer peer(ServerId server) { return {Role::server, server.value}; }
inline Peer peer(WorkerId worker) { return {Role::worker, worker.value}; }
inline Peer pending_worker(std::uint32_t connection) { return {Role::pending, connection}; }

/// Pass this to the transport.
struct Send {
  Peer to;
  wire::Message message;
};

}  // namespace motley::protocol
