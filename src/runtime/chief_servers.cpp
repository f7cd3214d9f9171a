// The chief's process and the other servers: where they are, what lives on which, and what they begin with.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/chief_process.h"
#include "runtime/state_transfer.h"

namespace motley::runtime {
namespace {

constexpr std::string_view server_title = "server ";

}  // namespace

/// Which server this is, when it is one.
std::optional<ServerId> ChiefProcess::server_called(std::string_view name) {
  ServerId server;
  if (!name.starts_with(server_title)) return std::nullopt;
  name.remove_prefix(server_title.size());
  const auto [stop, failure] = std::from_chars(name.data(), name.data() + name.size(), server.value);
  if (failure != std::errc{} || stop != name.data() + name.size()) return std::nullopt;
  return server;
}

void ChiefProcess::serving(Link& link, const wire::ServerHello& serve) {
  link.server = serve.server;
  by_server_[serve.server] = &link;
  server_addresses_[serve.server.value] = serve.address;
  distances_s_[serve.server.value] = std::max(0.0, seconds(serve.round_trip) / 2);
  hooks_.log(fmt::format("server {} at {}, {:.1f} ms away", serve.server.value, serve.address, 1e3 * distances_s_[serve.server.value]));
  if (by_server_.size() + 1 < options_.layout.servers) return;
  place_slices();
  for (const auto& [server, its_link] : by_server_) its_link->connection->send(wire::SlicePlacement{head_starts_});
  for (const std::uint32_t id : awaiting_job_)
    if (const auto waiting = by_id_.find(id); waiting != by_id_.end()) send_job(*waiting->second);
  awaiting_job_.clear();
}

/// Nobody has a slice yet but server 0, here.
void ChiefProcess::place_slices() {
  head_starts_ = store::head_starts(distances_s_, cluster::receive_bandwidth(options_.cluster));
  if (std::all_of(head_starts_.begin(), head_starts_.end(), [](std::uint64_t late) { return late == 0; })) return;
  store::place(options_.layout, head_starts_);
  shard_ = std::make_unique<ShardHost>(event_loop_, ServerId{0}, options_.layout, options_.optimizer, initial_state_,
                                       static_cast<ShardOwner&>(*this), options_.store_threads);
  wanted_ = ModelAssembly(options_.layout, options_.optimizer.kind);
  const auto here = options_.layout.of(ServerId{0}).size();
  hooks_.log(fmt::format("slices are placed by distance: {} of {}, the first that forward needs among them, live here", here,
                         options_.layout.slices.size()));
}

void ChiefProcess::send_initial_state(Link& link, ServerId server) {
  const store::Moments* moments = initial_state_.moments ? &*initial_state_.moments : nullptr;
  std::uint64_t pieces = 0;
  send_state(options_.layout, server, initial_state_.version, initial_state_.values, moments,
             [&](const wire::StateChunk& head, std::span<const std::byte> payload) {
               ++pieces;
               link.connection->send(transport::BulkMessage{head, payload, head.slice.value, next_ticket_++});
             });
  link.connection->send(
      wire::StateEnd{initial_state_.version, pieces, moments != nullptr ? moments->updates : 0, moments != nullptr ? moments->rate : 0});
}

void ChiefProcess::send_job(Link& link) { link.connection->send(wire::JobDescription{options_.job, server_addresses_, head_starts_}); }

}  // namespace motley::runtime
