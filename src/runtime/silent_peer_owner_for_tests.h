// For tests of classes that use a PeerConnection directly: an owner that is not interested in what the peer sends, and such a connection.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "runtime/fake_connection_for_tests.h"
#include "runtime/peer_connection.h"

namespace motley::runtime {

class SilentPeerOwner : public PeerOwner {
 public:
  wire::Objection objection(const PeerConnection&, wire::Lane, const wire::Message&) const override { return {}; }
  void expel(PeerConnection& peer, const std::string& why) override { peer.close(why); }
  void on_message(PeerConnection&, wire::Message) override {}
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Message&, std::size_t bytes) override {
    return from.discard(bytes);
  }
  void received(PeerConnection&, const wire::Message&) override {}
  void closed(PeerConnection&, const Error&) override {}
};

/// A connection to nobody: what is sent can be read from `fake`.
struct FakePeer {
  explicit FakePeer(boost::asio::io_context& event_loop) {
    auto made = std::make_unique<FakeConnection>();
    fake = made.get();
    connection = std::make_unique<PeerConnection>(std::move(made), event_loop, transport::Options{}, owner);
    connection->start();
  }
  SilentPeerOwner owner;
  FakeConnection* fake = nullptr;
  std::unique_ptr<PeerConnection> connection;
};

}  // namespace motley::runtime
