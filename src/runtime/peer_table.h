// Connections that a process has accepted, each with what the process knows of its peer.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/time.h"
#include "runtime/deferred_destruction.h"
#include "runtime/peer_connection.h"
#include "wire/permissions.h"

namespace motley::runtime {

/// A process at the other end of an accepted connection.
struct AcceptedPeer {
  std::unique_ptr<PeerConnection> connection;
  std::uint32_t id = 0;  // of the connection; never given twice
  wire::Sender role = wire::Sender::unidentified;
  std::string name;        // of its JoinRequest; empty before
  Instant last_contact{};  // its last control message, or when it was accepted
};

/// Owns the connections from when they are accepted until they are closed. `Peer` derives from AcceptedPeer; references stay valid until
/// remove(). Iterates in the order of the ids. Event-loop thread only.
template <class Peer>
class PeerTable {
 public:
  explicit PeerTable(boost::asio::io_context& event_loop) : destruction_(event_loop) {}

  /// Starts the connection.
  Peer& add(std::unique_ptr<PeerConnection> connection, Instant now) {
    PeerConnection& started = *connection;
    Peer& peer = peers_[next_id_];
    peer.connection = std::move(connection);
    peer.id = next_id_++;
    peer.last_contact = now;
    by_connection_[&started] = &peer;
    started.start();
    return peer;
  }
  /// Forgets a peer whose connection was closed. The connection is destroyed after the current callback.
  void remove(Peer& peer) {
    by_connection_.erase(peer.connection.get());
    peer.connection->retire();
    destruction_.add(std::move(peer.connection));
    peers_.erase(peer.id);
  }

  /// Null: its connection was closed.
  [[nodiscard]] Peer* find(const PeerConnection& connection) const {
    const auto found = by_connection_.find(&connection);
    return found == by_connection_.end() ? nullptr : found->second;
  }
  [[nodiscard]] Peer* find(std::uint32_t id) {
    const auto found = peers_.find(id);
    return found == peers_.end() ? nullptr : &found->second;
  }
  /// For callbacks of a connection, which end with its closed().
  [[nodiscard]] Peer& at(const PeerConnection& connection) const {
    Peer* peer = find(connection);
    check(peer != nullptr, "a connection has no callbacks after closed()");
    return *peer;
  }
  /// This process could not receive anything for so long: its peers were not silent.
  void excuse(Duration missed) {
    for (auto& [id, peer] : peers_) peer.last_contact += missed;
  }

  [[nodiscard]] auto begin() { return peers_.begin(); }
  [[nodiscard]] auto end() { return peers_.end(); }
  [[nodiscard]] auto begin() const { return peers_.begin(); }
  [[nodiscard]] auto end() const { return peers_.end(); }

 private:
  DeferredDestruction destruction_;
  std::map<std::uint32_t, Peer> peers_;
  std::map<const PeerConnection*, Peer*> by_connection_;
  std::uint32_t next_id_ = 0;
};

}  // namespace motley::runtime
