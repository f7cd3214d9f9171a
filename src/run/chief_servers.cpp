// The chief's process and the other servers: where they are, what lives on which, and what they begin with.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "run/carry.h"
#include "run/chief_process.h"

namespace motley::run {
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

void ChiefProcess::serving(Link& link, const wire::Serve& serve) {
  link.server = serve.server;
  by_server_[serve.server] = &link;
  server_addresses_[serve.server.value] = serve.address;
  distances_s_[serve.server.value] = std::max(0.0, seconds(serve.round_trip) / 2);
  hooks_.log(fmt::format("server {} at {}, {:.1f} ms away", serve.server.value, serve.address, 1e3 * distances_s_[serve.server.value]));
  if (by_server_.size() + 1 < options_.layout.servers) return;
  place_slices();
  for (const auto& [server, its_link] : by_server_) its_link->connection->send(wire::Placed{head_starts_});
  for (const std::uint32_t id : unbriefed_)
    if (const auto waiting = by_id_.find(id); waiting != by_id_.end()) brief(*waiting->second);
  unbriefed_.clear();
}

/// Nobody has a slice yet but server 0, here.
void ChiefProcess::place_slices() {
  head_starts_ = store::head_starts(distances_s_, cluster::receiving_line(options_.cluster));
  if (std::all_of(head_starts_.begin(), head_starts_.end(), [](std::uint64_t late) { return late == 0; })) return;
  store::place(options_.layout, head_starts_);
  shard_ = std::make_unique<ShardHost>(pump_, ServerId{0}, options_.layout, options_.optimizer, beginning_, static_cast<ShardOwner&>(*this),
                                       options_.store_threads);
  wanted_ = Collection(options_.layout, options_.optimizer.kind);
  const auto here = options_.layout.of(ServerId{0}).size();
  hooks_.log(fmt::format("slices are placed by distance: {} of {}, the first that forward needs among them, live here", here,
                         options_.layout.slices.size()));
}

void ChiefProcess::send_beginning(Link& link, ServerId server) {
  const store::Moments* moments = beginning_.moments ? &*beginning_.moments : nullptr;
  std::uint64_t pieces = 0;
  carry(options_.layout, server, beginning_.version, beginning_.values, moments,
        [&](const wire::Carried& head, std::span<const std::byte> payload) {
          ++pieces;
          link.connection->send(transport::Parcel{head, payload, head.slice.value, next_ticket_++});
        });
  link.connection->send(
      wire::CarriedAll{beginning_.version, pieces, moments != nullptr ? moments->updates : 0, moments != nullptr ? moments->rate : 0});
}

void ChiefProcess::brief(Link& link) { link.connection->send(wire::Briefing{options_.job, server_addresses_, head_starts_}); }

}  // namespace motley::run
