#include "transport/reception.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cstring>

#include "transport/bulk_negotiation.h"
#include "transport/constants.h"
#include "transport/stream_connection.h"

namespace motley::transport {

namespace {

/// The number of handshakes, up to `handshakes`, for which this process has file descriptors.
std::size_t affordable(std::size_t handshakes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return handshakes;
  return std::min(handshakes, std::max<std::size_t>(least_handshakes, limit.rlim_cur / handshake_descriptor_share));
}

/// Seeded unpredictably, so that a flooding peer cannot choose which handshake is dropped.
Rng draws() {
  const auto seed = random_bytes<sizeof(std::uint64_t)>();
  std::uint64_t number = 0;
  std::memcpy(&number, seed.data(), seed.size());
  return {number, "reception"};
}

/// The address family's unit of one host: an IPv4 address, the /64 network of an IPv6 address, or "local" for unix sockets.
std::string source_of(const Stream& stream) {
  boost::system::error_code failed;
  const auto endpoint = stream.remote_endpoint(failed);
  const int family = failed ? AF_UNSPEC : endpoint.protocol().family();
  if (family != AF_INET && family != AF_INET6) return "local";
  asio::ip::tcp::endpoint tcp;
  std::memcpy(tcp.data(), endpoint.data(), std::min(endpoint.size(), tcp.capacity()));
  const asio::ip::address address = tcp.address();
  if (address.is_v4()) return address.to_string();
  const asio::ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, v6).to_string();
  const auto bytes = v6.to_bytes();
  return {bytes.begin(), bytes.begin() + bytes.size() / 2};
}

}  // namespace

Reception::Reception(Options options, AcceptCallbacks& owner)
    : options_(std::move(options)),
      owner_(&owner),
      unproven_(affordable(options_.handshakes), draws()),
      proven_(options_.handshakes, draws()) {}

void Reception::admit(Stream stream) {
  const asio::any_io_executor executor = stream.get_executor();
  std::string from = peer_of(stream), source = source_of(stream);
  const Pending::Id id = next_id_++;
  if (const auto victim = unproven_.add(id, source))
    drop(*victim, fmt::format("{} handshakes were in progress: this one was dropped for a new one", unproven_.most()));
  const auto visit =
      std::make_shared<Visit>(Visit{id, std::move(stream), std::move(from), std::move(source), asio::steady_timer(executor)});
  visits_.emplace(id, visit);
  expect_in_time(visit);
  asio::co_spawn(executor, receive(shared_from_this(), visit), rethrow);
}

bool Reception::evict_one() {
  const auto victim = unproven_.victim();
  if (victim) drop(*victim, "the process has no file descriptor left: this one was dropped for a new one");
  return victim.has_value();
}

void Reception::cannot_accept(const std::string& why) {
  if (owner_ != nullptr) owner_->refused("a connecting process", fmt::format("accepting the connection failed: {}", why));
}

/// Moves the visit to the table of authenticated peers, where only other authenticated peers can evict it.
void Reception::take_proof_of(const VisitPtr& visit) {
  unproven_.remove(visit->id, visit->source);
  if (const auto victim = proven_.add(visit->id, visit->source))
    drop(*victim, fmt::format("{} connections waited for their other lane: this one was dropped for a new one", proven_.most()));
}

void Reception::expect_in_time(const VisitPtr& visit) {
  visit->deadline.expires_after(options_.handshake_time);
  visit->deadline.async_wait([self = weak_from_this(), late = std::weak_ptr(visit)](boost::system::error_code cancelled) {
    const auto here = self.lock();
    const auto pending = late.lock();
    if (here && pending && !cancelled)
      here->dismiss(pending, fmt::format("the handshake took longer than {} ms", here->options_.handshake_time.count()));
  });
}

asio::awaitable<void> Reception::receive(std::shared_ptr<Reception> self, VisitPtr visit) {
  const Result<Exchange> claim = co_await receive_claim(visit->stream, self->options_);
  if (visit->gone) co_return;
  if (!claim.ok()) co_return self->dismiss(visit, claim.error().message);
  self->take_proof_of(visit);
  if (claim->lane == Lane::control)
    co_await self->receive_control(visit, *claim);
  else
    co_await self->receive_bulk(visit, *claim);
}

asio::awaitable<void> Reception::receive_control(VisitPtr visit, Exchange claim) {
  if (half_of(claim.session)) {
    co_await refuse(visit->stream, Verdict::wrong_lane);
    co_return dismiss(visit, "a second control lane of the same session");
  }
  visit->waits_for_bulk = claim.session;
  const Outcome welcomed = co_await welcome(visit->stream, claim, options_);
  if (!welcomed.ok()) dismiss(visit, welcomed.error().message);
}

asio::awaitable<void> Reception::receive_bulk(VisitPtr visit, Exchange claim) {
  const VisitPtr control = half_of(claim.session);
  if (!control) {
    co_await refuse(visit->stream, Verdict::wrong_lane);
    co_return dismiss(visit, "a bulk lane without its control lane");
  }
  control->waits_for_bulk.reset();  // reserved: a second bulk lane of the pair is refused
  const Outcome welcomed = co_await welcome(visit->stream, claim, options_);
  if (visit->gone) co_return dismiss(control, "its bulk lane has ended");
  if (control->gone) co_return dismiss(visit, "its control lane has ended");
  if (!welcomed.ok()) {
    dismiss(control, "its bulk lane has ended");
    co_return dismiss(visit, welcomed.error().message);
  }
  tune(control->stream, Lane::control, options_);
  tune(visit->stream, Lane::bulk, options_);
  Result<std::shared_ptr<BulkLane>> bulk = co_await negotiate_bulk(visit->stream, options_);
  if (visit->gone) co_return dismiss(control, "its bulk lane has ended");
  if (control->gone) co_return dismiss(visit, "its control lane has ended");
  if (!bulk.ok()) {
    dismiss(control, "its bulk lane has ended");
    co_return dismiss(visit, bulk.error().message);
  }
  remove(control);
  remove(visit);
  owner_->accepted(std::make_unique<StreamConnection>(std::move(control->stream), std::move(*bulk), options_));
}

Reception::VisitPtr Reception::half_of(const Session& session) const {
  for (const auto& [id, visit] : visits_)
    if (visit->waits_for_bulk == session) return visit;
  return nullptr;
}

void Reception::remove(const VisitPtr& visit) {
  visit->gone = true;
  visit->deadline.cancel();
  unproven_.remove(visit->id, visit->source);
  proven_.remove(visit->id, visit->source);
  visits_.erase(visit->id);
}

/// Copies the pointer, because the element is erased from the map.
void Reception::drop(Pending::Id id, const std::string& why) { dismiss(VisitPtr(visits_.at(id)), why); }

void Reception::dismiss(const VisitPtr& visit, const std::string& why) {
  if (visit->gone) return;
  remove(visit);
  close_quietly(visit->stream);
  if (owner_ != nullptr) owner_->refused(visit->from, why);
}

void Reception::leave() {
  owner_ = nullptr;
  while (!visits_.empty()) drop(visits_.begin()->first, "the listener was closed");
}

}  // namespace motley::transport
