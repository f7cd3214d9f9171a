#include "runtime/server_connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/connect.h"

namespace motley::runtime {

ServerConnections::ServerConnections(boost::asio::io_context& event_loop, Options options, PeerConnection& chief, PeerOwner& owner)
    : event_loop_(event_loop), options_(std::move(options)), chief_(chief), owner_(owner) {}

void ServerConnections::connect(const std::vector<std::string>& addresses, std::function<void()> connected,
                                std::function<void(const std::string&)> failed) {
  servers_.resize(std::max<std::size_t>(addresses.size(), 1) - 1);
  missing_ = servers_.size();
  if (missing_ == 0) return connected();
  for (std::uint32_t server = 1; server < addresses.size(); ++server) {
    const auto address = transport::parse_address(addresses[server]);
    if (!address) return failed(fmt::format("server {}: {}", server, address.error().message));
    transport::connect(event_loop_, *address, options_.transport,
                       scope_.bind([this, server, connected, failed](Result<std::unique_ptr<transport::Connection>> connection) {
                         if (!connection) return failed(fmt::format("server {}: {}", server, connection.error().message));
                         opened(server, std::move(*connection));
                         if (--missing_ == 0) connected();
                       }));
  }
}

void ServerConnections::opened(std::uint32_t server, std::unique_ptr<transport::Connection> connection) {
  auto& held = servers_[server - 1];
  held = std::make_unique<PeerConnection>(std::move(connection), event_loop_, options_.transport, owner_);
  if (options_.link != nullptr) held->transport().reshape(options_.link->shape(server));
  held->start();
  held->send(wire::JoinRequest{options_.node});
}

void ServerConnections::retire() {
  scope_.cancel();
  for (const auto& server : servers_)
    if (server) server->retire();
}

std::optional<ServerId> ServerConnections::id_of(const PeerConnection& connection) const {
  if (&connection == &chief_) return ServerId{0};
  const auto found = std::find_if(servers_.begin(), servers_.end(), [&](const auto& server) { return server.get() == &connection; });
  if (found == servers_.end()) return std::nullopt;
  return ServerId{static_cast<std::uint32_t>(found - servers_.begin()) + 1};
}

void ServerConnections::send_beside_chief(const wire::Message& message) const {
  for (const auto& server : servers_)
    if (server) server->send(message);
}

bool ServerConnections::support_borrowing() const {
  return chief_.transport().supports_borrowing() && std::all_of(servers_.begin(), servers_.end(), [](const auto& server) {
           return server && server->transport().supports_borrowing();
         });
}

}  // namespace motley::runtime
