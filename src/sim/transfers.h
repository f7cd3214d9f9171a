// Messages in flight between the processes of a simulated cluster. Control messages take a path's latency; slices pass through
// sim/network.h with the bytes that their codec makes of them.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "protocol/peers.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/world_events.h"
#include "store/layout.h"
#include "wire/message.h"

namespace motley::sim {

inline constexpr Port chief_port{true, 0};  // server 0 runs in the chief's process
constexpr Port node_port(std::uint32_t node) { return {false, node}; }
constexpr Port server_port(std::uint32_t server) { return {true, server}; }

struct ControlMessage {
  protocol::Peer from;
  protocol::Peer to;
  std::uint32_t connection = 0;  // of the worker at one end, if there is one
  wire::Message message;
};

class Transfers {
 public:
  /// Keeps references to all three.
  Transfers(const cluster::Spec& cluster, const store::Layout& layout, EventQueue<WorldEvent>& queue);

  void send(Instant now, ControlMessage message, Port from, Port to);
  void send(Instant now, const wire::Push& slice, std::uint32_t node, std::uint32_t server, std::uint8_t bits);
  void send(Instant now, const wire::Pulled& slice, std::uint32_t server, std::uint32_t node);
  /// When the other end notices at the earliest that this one has closed the connection at `now`.
  [[nodiscard]] Instant loss_noticed(Instant now, Port from, Port to) const;

  /// To be called when ControlArrives is due; the message is no longer in flight.
  [[nodiscard]] ControlMessage take(const ControlArrives& arrival);
  /// Keeps an arrived message for a paused node, which takes it later.
  [[nodiscard]] ControlArrives keep(ControlMessage message);

  [[nodiscard]] Network& network() { return network_; }

 private:
  [[nodiscard]] std::uint64_t bytes_of(SliceId slice, std::uint8_t bits);

  const store::Layout& layout_;
  EventQueue<WorldEvent>& queue_;
  Network network_;
  std::vector<ControlMessage> messages_;
  std::vector<std::uint32_t> unused_;                               // slots of messages_
  std::map<std::uint8_t, std::vector<std::uint64_t>> slice_bytes_;  // by bits per value, then by slice
};

}  // namespace motley::sim
