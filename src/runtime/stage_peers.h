// The connections of a pipeline's chief: pending nodes and stages.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "cluster/spec.h"
#include "runtime/peer_table.h"

namespace motley::runtime {

/// A pipeline chief's record of a process at the other end of a connection.
struct StagePeer : AcceptedPeer {
  std::optional<std::uint32_t> device;    // its node in the job, after StageHello; none again when another process has taken its place
  std::string listens;                    // the address for its neighbour
  std::uint32_t sent_peer_lost = 0;       // the generation in which it did
  std::uint32_t sent_stage_assigned = 0;  // the same
};

using StagePeers = PeerTable<StagePeer>;

/// Null: no process is this node.
[[nodiscard]] inline StagePeer* peer_of_device(StagePeers& peers, std::uint32_t device) {
  for (auto& [id, peer] : peers)
    if (peer.device == device) return &peer;
  return nullptr;
}
[[nodiscard]] inline const StagePeer* peer_of_device(const StagePeers& peers, std::uint32_t device) {
  for (const auto& [id, peer] : peers)
    if (peer.device == device) return &peer;
  return nullptr;
}

/// The index of the job's node with this name.
[[nodiscard]] std::optional<std::uint32_t> device_called(const std::string& name, const cluster::Spec& cluster);

}  // namespace motley::runtime
