#include "runtime/join_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/chief_validation.h"
#include "runtime/random_key.h"
#include "runtime/state_transfer.h"

namespace motley::runtime {
namespace {

bool is_member(const ChiefPeer& peer, const protocol::Membership& members) {
  return std::any_of(peer.memberships.begin(), peer.memberships.end(), [&](const auto& one) { return members.contains(one.first); });
}

std::optional<NodeId> node_called(const std::string& name, const cluster::Spec& cluster) {
  const auto found = std::find_if(cluster.nodes.begin(), cluster.nodes.end(), [&](const cluster::Node& node) { return node.name == name; });
  if (found == cluster.nodes.end()) return std::nullopt;
  return NodeId{static_cast<std::uint32_t>(found - cluster.nodes.begin())};
}

}  // namespace

JoinProtocol::JoinProtocol(boost::asio::io_context& event_loop, const ChiefProcessOptions& options, ChiefPeers& peers,
                           std::shared_ptr<const InitialState> initial_state, Callbacks callbacks)
    : options_(options),
      peers_(peers),
      initial_state_(std::move(initial_state)),
      callbacks_(std::move(callbacks)),
      servers_(options.layout, cluster::receive_bandwidth(options.cluster)),
      links_(event_loop.get_executor(), options.cluster, ServerId{0}) {}

void JoinProtocol::join_requested(ChiefPeer& peer, const wire::JoinRequest& request) {
  peer.name = request.node;
  peer.node = node_called(request.node, options_.cluster);
  if (peer.node)
    if (auto shape = links_.towards(*peer.node)) peer.connection->transport().reshape(std::move(*shape));
  const auto server = server_named(request.node);
  peer.role = server ? wire::Sender::server : wire::Sender::worker;
  if (server) peer.connection->transport().reshape({.latency = cluster::distance_between(options_.cluster, 0, server->value)});
  peer.awaits_job = !server && !servers_.complete();  // a worker needs the servers' addresses
  if (!peer.awaits_job) send_job(peer);
}

void JoinProtocol::send_job(ChiefPeer& peer) {
  peer.connection->send(wire::JobDescription{options_.job, servers_.addresses(), servers_.head_starts()});
}

void JoinProtocol::server_registered(ChiefPeer& peer, const wire::ServerHello& hello) {
  peers_.add_server(peer, hello.server);
  servers_.add(hello.server, hello.address, hello.round_trip);
  callbacks_.log(
      fmt::format("server {} at {}, {:.1f} ms away", hello.server.value, hello.address, 1e3 * servers_.distance_s(hello.server)));
  if (!servers_.complete()) return;
  if (servers_.place_slices()) {
    callbacks_.placed();
    callbacks_.log(fmt::format("slices are placed by distance: {} of {}, the first that forward needs among them, are on server 0",
                               servers_.layout().of(ServerId{0}).size(), servers_.layout().slices.size()));
  }
  peers_.send_to_servers(wire::SlicePlacement{servers_.head_starts()});
  for (auto& [id, pending] : peers_.table())
    if (std::exchange(pending.awaits_job, false)) send_job(pending);
}

void JoinProtocol::slices_requested(ChiefPeer& peer) {
  peer.placed = true;
  const InitialState& state = *initial_state_;
  const store::Moments* moments = state.moments ? &*state.moments : nullptr;
  std::uint64_t chunks = 0;
  send_state(servers_.layout(), *peer.server, state.version, state.values, moments,
             [&](const wire::StateChunk& head, std::span<const std::byte> payload) {
               ++chunks;
               peer.connection->send_payload({.head = head, .payload = payload, .priority = head.slice.value}, initial_state_);
             });
  peer.connection->send(
      wire::StateEnd{state.version, chunks, moments != nullptr ? moments->updates : 0, moments != nullptr ? moments->rate : 0});
}

/// The machine records what it receives: one Hello for each membership, however often a peer repeats it while it waits.
void JoinProtocol::hello_received(ChiefPeer& peer, const wire::Hello& hello, const protocol::Membership& members) {
  peer.attempt = hello.attempt;
  if (peer.awaits_welcome || peer.stopped) return;
  if (is_member(peer, members)) ++peer.memberships_replaced;
  peer.awaits_welcome = true;
  callbacks_.tell(protocol::Received{protocol::pending_worker(peer.id), hello});
}

void JoinProtocol::welcome(ChiefPeer& peer, wire::Welcome welcome) {
  welcome.key = random_key();
  welcome.attempt = peer.attempt;  // the last Hello that waited for this answer
  peer.awaits_welcome = false;
  peers_.add_membership(peer, welcome.worker);
  peers_.send_to_servers(wire::Admitted{welcome.worker, welcome.key});
  peer.connection->send(welcome);
}

void JoinProtocol::expel_silent(Instant now, const protocol::Membership& members, Expulsions& expulsions) {
  for (auto& [id, peer] : peers_.table()) {
    if (peer.server || now - peer.last_contact <= options_.join_deadline || is_member(peer, members)) continue;
    expulsions.expel(*peer.connection, peer.identified() ? Expulsions::Peer::identified : Expulsions::Peer::unidentified, peer.name,
                     fmt::format("it is no member and has sent nothing for {:.0f} s", seconds(options_.join_deadline)));
  }
}

}  // namespace motley::runtime
