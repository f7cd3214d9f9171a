// Listens at an address and wraps each connection that it accepts in a PeerConnection.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "runtime/expulsions.h"
#include "runtime/peer_connection.h"
#include "transport/acceptor.h"

namespace motley::runtime {

class PeerListener final : private transport::AcceptCallbacks {
 public:
  /// Called on the event-loop thread; starts the connection.
  using Accepted = std::function<void(std::unique_ptr<PeerConnection>)>;

  /// `owner` and `expulsions` outlive this and the connections.
  PeerListener(boost::asio::io_context& event_loop, transport::Options options, PeerOwner& owner, Expulsions& expulsions, Accepted accepted)
      : event_loop_(event_loop), options_(std::move(options)), owner_(owner), expulsions_(expulsions), accepted_(std::move(accepted)) {}

  Outcome listen(const transport::Address& address) {
    auto acceptor = transport::listen(event_loop_, address, options_, *this);
    if (!acceptor) return acceptor.error();
    acceptor_ = std::move(*acceptor);
    return Done{};
  }
  /// After listen().
  [[nodiscard]] const transport::Address& address() const { return acceptor_->address(); }
  /// Takes connections as from its own socket.
  [[nodiscard]] transport::AcceptCallbacks& callbacks() { return *this; }

 private:
  void accepted(std::unique_ptr<transport::Connection> connection) override {
    accepted_(std::make_unique<PeerConnection>(std::move(connection), event_loop_, options_, owner_));
  }
  void refused(const std::string& address, const std::string& reason) override { expulsions_.refused(address, reason); }

  boost::asio::io_context& event_loop_;
  transport::Options options_;
  PeerOwner& owner_;
  Expulsions& expulsions_;
  Accepted accepted_;
  std::unique_ptr<transport::Acceptor> acceptor_;  // last: destroyed before what its callbacks use
};

}  // namespace motley::runtime
