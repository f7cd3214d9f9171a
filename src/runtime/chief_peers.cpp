#include "runtime/chief_peers.h"

#include <fmt/format.h>

namespace motley::runtime {
namespace {

template <class Id>
ChiefPeer* find_in(const std::map<Id, ChiefPeer*>& peers, Id id) {
  const auto found = peers.find(id);
  return found == peers.end() ? nullptr : found->second;
}

}  // namespace

void ChiefPeers::add_membership(ChiefPeer& peer, WorkerId worker) {
  peer.memberships.emplace(worker, ChiefPeer::Steps{});
  by_worker_[worker] = &peer;
  node_names_[worker] = peer.name;
}

void ChiefPeers::add_server(ChiefPeer& peer, ServerId server) {
  peer.server = server;
  by_server_[server] = &peer;
}

void ChiefPeers::remove(ChiefPeer& peer) {
  if (peer.server) by_server_.erase(*peer.server);
  for (const auto& [worker, steps] : peer.memberships) by_worker_.erase(worker);
  table_.remove(peer);
}

ChiefPeer* ChiefPeers::worker(WorkerId worker) const { return find_in(by_worker_, worker); }

ChiefPeer* ChiefPeers::server(ServerId server) const { return find_in(by_server_, server); }

void ChiefPeers::send_to_servers(const wire::Message& message) const {
  for (const auto& [server, peer] : by_server_) peer->connection->send(message);
}

std::string ChiefPeers::describe(WorkerId worker) const {
  const auto name = node_names_.find(worker);
  const ChiefPeer* peer = this->worker(worker);
  return fmt::format("worker {} on node {}{}", worker.value, name == node_names_.end() ? "?" : name->second,
                     peer != nullptr ? fmt::format(" ({})", peer->connection->address()) : "");
}

}  // namespace motley::runtime
