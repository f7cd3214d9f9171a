// A chief's record of a process at the other end of a connection: its identity, its memberships, and how far each has come.
#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include "base/ids.h"
#include "base/time.h"
#include "runtime/peer_table.h"

namespace motley::runtime {

struct ChiefPeer : AcceptedPeer {
  /// Of one membership: the first step that was not ordered, not begun and not contributed yet.
  struct Steps {
    Step ordered, began, contributed;
  };

  bool awaits_job = false;  // it sent JoinRequest before all servers were there

  // Of a worker.
  std::optional<NodeId> node;              // of the job, with its name
  std::map<WorkerId, Steps> memberships;   // given on this connection
  std::optional<Instant> heartbeat;        // the last one that the machine received
  std::uint32_t attempt = 0;               // of its last Hello; 0: it has sent none, and the machine does not know it
  bool awaits_welcome = false;             // the machine has received its Hello
  bool left = false;                       // it sent Leaving
  bool stopped = false;                    // it was sent Stop
  std::uint32_t memberships_replaced = 0;  // by a Hello while they were valid

  // Of a server.
  std::optional<ServerId> server;
  std::uint32_t echoes = 0;  // that were answered
  bool placed = false;       // it has asked for its slices

  [[nodiscard]] bool identified() const { return !memberships.empty() || server; }
};

}  // namespace motley::runtime
