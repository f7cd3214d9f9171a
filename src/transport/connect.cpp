#include "transport/connect.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <vector>

#include "transport/bulk_negotiation.h"
#include "transport/handshake.h"
#include "transport/stream.h"
#include "transport/stream_connection.h"

namespace motley::transport {
namespace {

using Endpoints = std::vector<Stream::endpoint_type>;

/// One attempt to reach a listener. Lives as long as its coroutine and its timer.
struct Attempt : std::enable_shared_from_this<Attempt> {
  Attempt(asio::io_context& io, Address to, Options how)
      : address(std::move(to)), options(std::move(how)), resolver(io), control(io), bulk(io), deadline(io) {}

  Address address;
  Options options;
  asio::ip::tcp::resolver resolver;
  Stream control;
  Stream bulk;
  asio::steady_timer deadline;
  bool late = false;

  void start_deadline() {
    deadline.expires_after(options.handshake_time);
    deadline.async_wait([self = weak_from_this()](boost::system::error_code cancelled) {
      if (const auto attempt = self.lock(); attempt && !cancelled) attempt->give_up();
    });
  }

  void give_up() {
    late = true;
    resolver.cancel();
    close_quietly(control);
    close_quietly(bulk);
  }

  [[nodiscard]] Error failed(const std::string& why) const {
    const std::string found = late ? fmt::format("no answer within {} ms", options.handshake_time.count()) : why;
    return world_failed(fmt::format("cannot connect to {}: {}; is a Motley server listening there?", to_text(address), found));
  }
};

asio::awaitable<Result<Endpoints>> endpoints_of(Attempt& attempt) {
  if (const auto* local = std::get_if<UnixAddress>(&attempt.address))
    co_return Endpoints{Stream::endpoint_type(asio::local::stream_protocol::endpoint(local->path))};
  const auto& tcp = std::get<TcpAddress>(attempt.address);
  const auto [failed, found] = co_await attempt.resolver.async_resolve(tcp.host, std::to_string(tcp.port), as_values);
  if (failed) co_return attempt.failed(failed.message());
  Endpoints endpoints;
  for (const auto& entry : found) endpoints.emplace_back(entry.endpoint());
  co_return endpoints;
}

/// Opens one lane to the first endpoint that answers, and leaves only that one in the list, so that both lanes use the same.
asio::awaitable<Outcome> open_lane(Attempt& attempt, Stream& stream, Lane lane, Endpoints& endpoints, const Session& session) {
  boost::system::error_code failed = asio::error::host_not_found;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const Stream::endpoint_type endpoint = endpoints[i];
    close_quietly(stream);
    std::tie(failed) = co_await stream.async_connect(endpoint, as_values);
    if (attempt.late || !failed) {
      endpoints = {endpoint};
      break;
    }
  }
  if (attempt.late || failed) co_return attempt.failed(failed.message());
  tune(stream, lane, attempt.options);
  const Outcome introduced = co_await authenticate(stream, lane, session, attempt.options);
  if (!attempt.late && !introduced.ok() && introduced.error().next != Next::give_up)
    co_return Error{introduced.error().next,
                    fmt::format("{} refuses the connection: {}", to_text(attempt.address), introduced.error().message)};
  if (attempt.late || !introduced.ok()) co_return attempt.failed(introduced.ok() ? "late" : introduced.error().message);
  co_return Done{};
}

asio::awaitable<Result<std::unique_ptr<Connection>>> reach(std::shared_ptr<Attempt> attempt) {
  attempt->start_deadline();
  Result<Endpoints> endpoints = co_await endpoints_of(*attempt);
  if (!endpoints.ok()) co_return endpoints.error();
  const auto session = random_bytes<sizeof(Session)>();
  if (Outcome up = co_await open_lane(*attempt, attempt->control, Lane::control, *endpoints, session); !up.ok()) co_return up.error();
  if (Outcome up = co_await open_lane(*attempt, attempt->bulk, Lane::bulk, *endpoints, session); !up.ok()) co_return up.error();
  Result<std::shared_ptr<BulkLane>> bulk = co_await negotiate_bulk(attempt->bulk, attempt->options);
  if (!attempt->late && !bulk.ok() && bulk.error().next == Next::tell_user) co_return bulk.error();
  if (attempt->late || !bulk.ok()) co_return attempt->failed(bulk.ok() ? "late" : bulk.error().message);
  attempt->deadline.cancel();
  co_return std::make_unique<StreamConnection>(std::move(attempt->control), std::move(*bulk), attempt->options);
}

}  // namespace

void connect(asio::io_context& io, const Address& address, const Options& options, Connected done) {
  auto attempt = std::make_shared<Attempt>(io, address, options);
  asio::co_spawn(
      io, [attempt, done = std::move(done)]() -> asio::awaitable<void> { done(co_await reach(attempt)); }, rethrow);
}

}  // namespace motley::transport
