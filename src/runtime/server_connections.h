// A worker's connections to all servers of a job. Server 0 shares the process and the connection of the chief.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "runtime/callback_scope.h"
#include "runtime/link_shapes.h"
#include "runtime/peer_connection.h"
#include "transport/options.h"

namespace motley::runtime {

class ServerConnections {
 public:
  struct Options {
    std::string node;              // of this worker: a server emulates the link to it
    transport::Options transport;  // of the job
    const WorkerLink* link{};      // emulated limits of the connections to servers other than 0; null: none
  };
  /// `chief` and `owner` outlive this, or its call of retire().
  ServerConnections(boost::asio::io_context& event_loop, Options options, PeerConnection& chief, PeerOwner& owner);

  /// Once. `addresses`: by server; the first is not read. Calls one of the two, when all are connected or when the first attempt failed.
  void connect(const std::vector<std::string>& addresses, std::function<void()> connected, std::function<void(const std::string&)> failed);
  /// Nothing of the servers is delivered to the owner any more.
  void retire();

  [[nodiscard]] std::size_t size() const { return servers_.size() + 1; }
  [[nodiscard]] PeerConnection& at(ServerId server) const { return server.value == 0 ? chief_ : *servers_.at(server.value - 1); }
  /// Nothing: it is none of these.
  [[nodiscard]] std::optional<ServerId> id_of(const PeerConnection& connection) const;
  /// To each server that is connected so far but the chief's, once for each connection.
  void send_beside_chief(const wire::Message& message) const;
  [[nodiscard]] bool support_borrowing() const;

 private:
  void opened(std::uint32_t server, std::unique_ptr<transport::Connection> connection);

  boost::asio::io_context& event_loop_;
  Options options_;
  PeerConnection& chief_;
  PeerOwner& owner_;
  std::vector<std::unique_ptr<PeerConnection>> servers_;  // by ServerId less one; null: not connected yet
  std::size_t missing_ = 0;
  CallbackScope scope_;  // last
};

}  // namespace motley::runtime
