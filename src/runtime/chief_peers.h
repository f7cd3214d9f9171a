// The connections of a chief, by what it calls their peers: pending workers, members and servers.
#pragma once
#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>

#include "base/ids.h"
#include "runtime/chief_peer.h"
#include "runtime/peer_table.h"

namespace motley::runtime {

/// References stay valid until remove(). Event-loop thread only.
class ChiefPeers {
 public:
  explicit ChiefPeers(boost::asio::io_context& event_loop) : table_(event_loop) {}

  /// All connections, of whatever peer.
  [[nodiscard]] PeerTable<ChiefPeer>& table() { return table_; }
  [[nodiscard]] const PeerTable<ChiefPeer>& table() const { return table_; }

  /// The peer is a new member from now on.
  void add_membership(ChiefPeer& peer, WorkerId worker);
  /// The peer is this server from now on.
  void add_server(ChiefPeer& peer, ServerId server);
  /// The connection was closed. A member's name is kept until forget().
  void remove(ChiefPeer& peer);

  /// Null: its connection was closed.
  [[nodiscard]] ChiefPeer* worker(WorkerId worker) const;
  [[nodiscard]] ChiefPeer* server(ServerId server) const;
  [[nodiscard]] bool has_workers() const { return !by_worker_.empty(); }
  [[nodiscard]] bool has_servers() const { return !by_server_.empty(); }
  void send_to_servers(const wire::Message& message) const;

  /// For the log: "worker 3 on node a (127.0.0.1:4000)".
  [[nodiscard]] std::string describe(WorkerId worker) const;
  /// The membership has ended.
  void forget(WorkerId worker) { node_names_.erase(worker); }

 private:
  PeerTable<ChiefPeer> table_;
  std::map<WorkerId, ChiefPeer*> by_worker_;
  std::map<ServerId, ChiefPeer*> by_server_;
  std::map<WorkerId, std::string> node_names_;  // of members
};

}  // namespace motley::runtime
