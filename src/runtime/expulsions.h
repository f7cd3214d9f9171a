// Closes connections to peers that broke the protocol and logs the reason, once for each connection.
#pragma once
#include <boost/asio/io_context.hpp>
#include <string>

#include "runtime/limited_log.h"
#include "runtime/log.h"
#include "runtime/peer_connection.h"

namespace motley::runtime {

class Expulsions {
 public:
  /// Every process that knows the token can connect as often as it likes: what it causes before it has an identity is logged at a limited
  /// rate.
  enum class Peer { identified, unidentified };

  Expulsions(boost::asio::io_context& event_loop, Log log) : log_(std::move(log)), limited_(event_loop, log_) {}

  /// `name`: what the peer is, such as "a worker"; empty: its address alone is logged.
  void expel(PeerConnection& connection, Peer peer, const std::string& name, const std::string& why);
  /// A connection was refused before it was accepted.
  void refused(const std::string& address, const std::string& why);

 private:
  Log log_;
  LimitedLog limited_;
};

}  // namespace motley::runtime
