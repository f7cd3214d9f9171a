#include "runtime/server_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/match.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

constexpr std::size_t most_early = std::size_t{1} << 16U;  // messages that wait for the slices: some for each worker of the cluster
constexpr int checks = 4;                                  // of silent connections, in a join deadline

}  // namespace

ServerTraining::ServerTraining(boost::asio::io_context& event_loop, const ServerProcessOptions& options, ServerSetup setup,
                               PeerConnection& chief, Expulsions& expulsions, Log log)
    : event_loop_(event_loop),
      options_(options),
      setup_(std::move(setup)),
      chief_(chief),
      expulsions_(expulsions),
      log_(std::move(log)),
      links_(event_loop.get_executor(), setup_.cluster, options.server),
      round_trip_(chief),
      states_(setup_.layout, options.server, chief),
      watch_(event_loop),
      phase_(Receiving{StateReceiver(setup_.layout, options.server)}),
      workers_(event_loop, options.transport, *this, expulsions, [this](WorkerId worker, PeerConnection& connection) {
        if (ShardHost* host = shard()) host->attach(worker, connection.transport());
      }) {}

Outcome ServerTraining::start() {
  transport::Options options = options_.transport;
  options.job = setup_.job;
  auto acceptor = transport::listen(event_loop_, options_.listen, options, *this);
  if (!acceptor) return acceptor.error();
  acceptor_ = std::move(*acceptor);
  chief_.transport().reshape({.latency = cluster::distance_between(setup_.cluster, 0, options_.server.value)});
  watch_.start(options_.join_deadline / checks, [this] {
    workers_.expel_silent(options_.join_deadline,
                          [this](const PeerConnection& worker) { return shard() != nullptr && shard()->is_attached(worker.transport()); });
  });
  round_trip_.start();
  return Done{};
}

void ServerTraining::stop() {
  watch_.stop();
  acceptor_.reset();
  workers_.stop();
}

// The chief ------------------------------------------------------------------------------------------------------------------------------

/// In order: first the slices, then what happens to them.
wire::Objection ServerTraining::objection_to_chief(const wire::Message& message) const {
  const auto* chunk = std::get_if<wire::StateChunk>(&message);
  const auto* end = std::get_if<wire::StateEnd>(&message);
  const auto* receiving = std::get_if<Receiving>(&phase_);
  if (receiving == nullptr && (chunk != nullptr || end != nullptr || std::holds_alternative<wire::SlicePlacement>(message)))
    return fmt::format("its {} comes after the server has begun", wire::name_of(message));
  if (receiving != nullptr && receiving->early.size() >= most_early)
    return fmt::format("more than {} messages come before the slices", most_early);
  if (chunk != nullptr) return receiving->state.objection(*chunk);
  if (end != nullptr) return receiving->state.objection(*end);
  const auto* member = std::get_if<wire::Admitted>(&message);
  if (member != nullptr && workers_.knows(member->worker)) return fmt::format("it admits worker {} twice", member->worker.value);
  const auto* release = std::get_if<wire::Release>(&message);
  if (release != nullptr && !workers_.knows(release->worker))
    return fmt::format("it releases parameters for worker {}, which is no member", release->worker.value);
  return {};
}

void ServerTraining::on_chief_message(wire::Message message) {
  std::visit(match{[&](const wire::StateEnd& m) {
                     std::get<Receiving>(phase_).state.received(m);
                     begin_if_complete();
                   },
                   [&](const wire::Echo& m) { echoed(m); },
                   [&](const wire::SlicePlacement& m) {
                     if (m.head_starts.size() == setup_.layout.servers) store::place(setup_.layout, m.head_starts);
                     chief_.send(m);
                   },
                   [&](const wire::Admitted& m) { workers_.admitted(m); }, [&](const auto&) { to_shard(std::move(message)); }},
             message);
}

void ServerTraining::echoed(const wire::Echo& echo) {
  if (const auto round_trip = round_trip_.answered(echo))
    chief_.send(wire::ServerHello{options_.server, options_.reach.empty() ? to_text(acceptor_->address()) : options_.reach, *round_trip});
}

std::span<std::byte> ServerTraining::receive_state(const wire::StateChunk& chunk, std::size_t bytes) {
  return std::get<Receiving>(phase_).state.receive_buffer(chief_, chunk, bytes);
}

void ServerTraining::state_received(const wire::StateChunk& chunk) {
  if (auto* receiving = std::get_if<Receiving>(&phase_)) receiving->state.received(chief_, chunk);
  begin_if_complete();
}

void ServerTraining::begin_if_complete() {
  auto* receiving = std::get_if<Receiving>(&phase_);
  if (receiving == nullptr || !receiving->state.is_complete()) return;
  const auto state = receiving->state.take();
  if (!state) return expel_chief(state.error().message);
  const std::deque<wire::Message> early = std::move(receiving->early);
  phase_.emplace<ShardHost>(event_loop_, options_.server, setup_.layout, setup_.optimizer, **state, static_cast<ShardOwner&>(*this),
                            options_.store_threads);
  log_(fmt::format("server {} holds {} of {} slices, listening on {}", options_.server.value, setup_.layout.of(options_.server).size(),
                   setup_.layout.slices.size(), to_text(acceptor_->address())));
  workers_.repeat_attached();
  for (const wire::Message& message : early) to_shard(message);
}

void ServerTraining::to_shard(wire::Message message) {
  ShardHost* host = shard();
  if (host == nullptr) {
    std::get<Receiving>(phase_).early.push_back(std::move(message));
    return;
  }
  if (const auto why = host->objection(message)) return expel_chief(*why);
  if (const auto* gone = std::get_if<wire::Forget>(&message)) workers_.forget(gone->worker);
  host->receive(message);
}

// Workers --------------------------------------------------------------------------------------------------------------------------------

wire::Objection ServerTraining::objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const {
  if (auto why = wire::objection(wire::Sender::servers_worker, lane, message)) return why;
  const auto* push = std::get_if<wire::Push>(&message);
  if (push == nullptr) return {};
  return shard() != nullptr ? shard()->objection(from.transport(), *push) : wire::Objection{"it pushes to a server that has not begun"};
}

void ServerTraining::on_message(PeerConnection& from, wire::Message message) {
  workers_.note_message(from);
  if (const auto* join_request = std::get_if<wire::JoinRequest>(&message)) shape(from, join_request->node);
  if (const auto* claim = std::get_if<wire::Attach>(&message)) workers_.claimed(from, *claim);
}

/// As the link of the node is described, if it is emulated.
void ServerTraining::shape(PeerConnection& worker, const std::string& node) {
  const auto& nodes = setup_.cluster.nodes;
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const cluster::Node& one) { return one.name == node; });
  if (auto shape = links_.towards(NodeId{static_cast<std::uint32_t>(found - nodes.begin())})) worker.transport().reshape(std::move(*shape));
}

std::span<std::byte> ServerTraining::receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) {
  return shard()->receive_buffer(from.transport(), std::get<wire::Push>(head), bytes);
}

void ServerTraining::received(PeerConnection& from, const wire::Message& head) {
  shard()->received(from.transport(), std::get<wire::Push>(head));
}

bool ServerTraining::accept_in_place(PeerConnection& from, const wire::Message& head, std::span<const std::byte> payload,
                                     const transport::BorrowedMemory& borrow) {
  return shard()->accept_in_place(from.transport(), std::get<wire::Push>(head), payload, borrow);
}

void ServerTraining::sent(PeerConnection&, std::uint64_t ticket) {
  if (shard() != nullptr) shard()->sent(ticket);
}

void ServerTraining::closed(PeerConnection& worker, const Error&) {
  if (shard() != nullptr) shard()->detach(worker.transport());
  workers_.remove(worker);
}

}  // namespace motley::runtime
