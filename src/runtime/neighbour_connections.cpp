#include "runtime/neighbour_connections.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <utility>

namespace motley::runtime {

NeighbourConnections::NeighbourConnections(boost::asio::io_context& event_loop, const transport::Options& options, PeerOwner& owner,
                                           Expulsions& expulsions)
    : event_loop_(event_loop), options_(options), owner_(owner), expulsions_(expulsions), retired_(event_loop) {}

PeerConnection& NeighbourConnections::add(std::unique_ptr<transport::Connection> connection, Opened opened) {
  auto made = std::make_unique<PeerConnection>(std::move(connection), event_loop_, options_, owner_);
  PeerConnection& peer = *made;
  connections_[&peer] = {std::move(made), opened == Opened::accepted, std::nullopt, clock_.now()};
  peer.start();
  return peer;
}

const NeighbourConnections::Connection* NeighbourConnections::find(const PeerConnection& peer) const {
  const auto found = connections_.find(&peer);
  return found == connections_.end() ? nullptr : &found->second;
}

void NeighbourConnections::expel(PeerConnection& peer, const std::string& why) {
  expulsions_.expel(peer, Expulsions::Peer::unidentified, "a neighbour", why);
}

void NeighbourConnections::expel_idle(Duration longest, const PeerConnection* neighbour) {
  for (auto& [peer, connection] : connections_)
    if (connection.accepted && peer != neighbour && clock_.now() - connection.since > longest)
      expel(*connection.peer, fmt::format("it is no neighbour after {:.0f} s", seconds(longest)));
}

void NeighbourConnections::retire(std::unique_ptr<PeerConnection> peer) {
  peer->retire();
  retired_.add(std::move(peer));
}

void NeighbourConnections::remove(const PeerConnection& peer) {
  auto found = connections_.extract(&peer);
  if (!found.empty()) retire(std::move(found.mapped().peer));
}

void NeighbourConnections::drop_before(std::uint32_t generation) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    const Connection& connection = it->second;
    const bool stays = connection.accepted && (!connection.hello || connection.hello->generation >= generation);
    if (!stays) retire(std::move(it->second.peer));
    it = stays ? std::next(it) : connections_.erase(it);
  }
}

void NeighbourConnections::drop_all() { drop_before(std::numeric_limits<std::uint32_t>::max()); }

void NeighbourConnections::stop() {
  for (auto& [peer, connection] : connections_) connection.peer->retire();
}

}  // namespace motley::runtime
