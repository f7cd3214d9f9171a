#include "runtime/chief_process.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/match.h"
#include "protocol/trace_events.h"
#include "runtime/chief_log.h"
#include "runtime/chief_validation.h"

namespace motley::runtime {
namespace {

/// Statistics that are not finite or negative tell a strategy nothing: they are set to 0, which means unknown.
wire::Contributed without_invalid_statistics(wire::Contributed reported) {
  for (double* statistic : {&reported.report.residual, &reported.report.update_norm})
    if (!std::isfinite(*statistic) || *statistic < 0) *statistic = 0;
  return reported;
}

}  // namespace

ChiefProcess::ChiefProcess(boost::asio::io_context& event_loop, ChiefProcessOptions options, protocol::Chief chief,
                           InitialState initial_state, ChiefHooks hooks)
    : event_loop_(event_loop),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      machine_(event_loop, std::move(chief), options_.cluster.heartbeat, options_.chief,
               {.carry_out = [this](const protocol::ChiefAction& action) { carry_out(action); },
                .paused = [this](Duration missed) { peers_.table().excuse(missed); },
                .record = hooks_.inputs}),
      trace_(options_.cluster, options_.trained_before, hooks_.on_event),
      shard_(make_shard(options_.layout, initial_state)),
      expulsions_(event_loop, hooks_.log),
      peers_(event_loop),
      listener_(event_loop, options_.transport, *this, expulsions_,
                [this](std::unique_ptr<PeerConnection> connection) {
                  if (!machine_.stopped()) peers_.table().add(std::move(connection), machine_.now());
                }),
      join_(event_loop, options_, peers_,
            std::make_shared<const InitialState>(options_.layout.servers > 1 ? std::move(initial_state) : InitialState{}),
            {.tell = [this](const protocol::ChiefEvent& event) { machine_.tell(event); },
             .placed =
                 [this] {
                   shard_ = make_shard(join_.servers().layout(), join_.initial_state());
                   snapshots_.set_layout(join_.servers().layout());
                 },
             .log = hooks_.log}),
      remote_traffic_(join_.servers().layout()),
      ticker_(event_loop),
      shutdown_(event_loop, [this] { finish_when_done(); }),
      snapshots_(event_loop, options_.layout, options_.optimizer.kind, hooks_, *this) {}

std::unique_ptr<ShardHost> ChiefProcess::make_shard(const store::Layout& layout, const InitialState& state) {
  return std::make_unique<ShardHost>(event_loop_, ServerId{0}, layout, options_.optimizer, state, static_cast<ShardOwner&>(*this),
                                     options_.store_threads);
}

Outcome ChiefProcess::start(std::function<void(Result<protocol::TrainingOutcome>)> over) {
  over_ = std::move(over);
  if (const Outcome listening = listener_.listen(options_.listen); !listening) return listening.error();
  ticker_.start(options_.cluster.heartbeat / 2, [this] { tick(); });
  return Done{};
}

void ChiefProcess::tick() {
  machine_.tell(protocol::Tick{});
  if (!machine_.stopped()) join_.expel_silent(machine_.now(), machine_.chief().membership(), expulsions_);
}

// Connections ----------------------------------------------------------------------------------------------------------------------------

wire::Objection ChiefProcess::objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const {
  return runtime::objection(peers_.table().at(from), lane, message, {join_.servers(), machine_.chief().version()});
}

void ChiefProcess::expel(PeerConnection& connection, const std::string& why) {
  const ChiefPeer& peer = peers_.table().at(connection);
  expulsions_.expel(connection, peer.identified() ? Expulsions::Peer::identified : Expulsions::Peer::unidentified, peer.name, why);
}

void ChiefProcess::on_message(PeerConnection& from, wire::Message message) {
  ChiefPeer& peer = peers_.table().at(from);
  peer.last_contact = machine_.now();
  std::visit(match{[&](const wire::JoinRequest& m) { join_.join_requested(peer, m); },
                   [&](const wire::Attach& m) { shard_->attach(m.worker, from.transport()); },
                   [&](const wire::Hello& m) { join_.hello_received(peer, m, machine_.chief().membership()); },
                   [&](const wire::Began& m) { began(peer, m); }, [&](const wire::Contributed& m) { contributed(peer, m); },
                   [&](const wire::Leaving& m) { leaving(peer, m); }, [&](const wire::Heartbeat& m) { heartbeat(peer, m); },
                   [&](const wire::ServerHello& m) { join_.server_registered(peer, m); },
                   [&](const wire::Echo& m) {
                     ++peer.echoes;
                     from.send(m);
                   },
                   [&](const wire::SlicePlacement&) { join_.slices_requested(peer); },
                   [&](const wire::Gathered& m) {
                     remote_traffic_.gathered(m);
                     server_message(m.server, m);
                   },
                   [&](const wire::AlignmentResult& m) { server_message(m.server, m); },
                   [&](const wire::Probe& m) { server_message(m.server, m); }, [](const auto&) {}},  // refused by objection()
             message);
}

/// The machine records what it receives: superfluous heartbeats of a faulty peer must not fill the disk.
void ChiefProcess::heartbeat(ChiefPeer& peer, const wire::Heartbeat& message) {
  const bool due = !peer.heartbeat || peer.last_contact - *peer.heartbeat >= options_.cluster.heartbeat / 4;
  if (message.worker == wire::no_worker || !due) return;
  peer.heartbeat = peer.last_contact;
  machine_.tell(protocol::Received{protocol::peer(message.worker), message});
}

/// A membership that ended before is not affected.
void ChiefProcess::leaving(ChiefPeer& peer, const wire::Leaving& message) {
  peer.left = true;
  if (machine_.chief().membership().contains(message.worker)) machine_.tell(protocol::Received{protocol::peer(message.worker), message});
}

void ChiefProcess::began(ChiefPeer& peer, const wire::Began& message) {
  peer.memberships.at(message.worker).began = message.step.next();
  trace_.record(machine_.now(), trace::ComputeBegan{.worker = message.worker, .step = message.step});
  machine_.tell(protocol::Received{protocol::peer(message.worker), message});
}

void ChiefProcess::contributed(ChiefPeer& peer, wire::Contributed message) {
  peer.memberships.at(message.worker).contributed = message.step.next();
  trace_.record(machine_.now(),
                trace::ComputeEnded{
                    .worker = message.worker, .step = message.step, .samples = message.report.samples, .stalled = message.report.stalled});
  machine_.tell(protocol::Received{protocol::peer(message.worker), without_invalid_statistics(std::move(message))});
}

void ChiefProcess::server_message(ServerId server, const wire::Message& message) {
  machine_.tell(protocol::Received{protocol::peer(server), message});
}

void ChiefProcess::closed(PeerConnection& connection, const Error& why) {
  ChiefPeer& peer = peers_.table().at(connection);
  shard_->detach(connection.transport());
  if (peer.server && !outcome_)
    return end(world_failed(server_lost_text(*peer.server, join_.servers().addresses()[peer.server->value], why.message)));
  if (!peer.memberships.empty() && !outcome_) hooks_.log(fmt::format("lost {}: {}", connection.address(), why.message));
  const auto memberships = peer.memberships;
  const bool known_to_machine = peer.attempt > 0;
  const std::uint32_t id = peer.id;
  peers_.remove(peer);
  if (machine_.stopped()) return;
  for (const auto& [worker, steps] : memberships) machine_.tell(protocol::Lost{worker});
  if (known_to_machine) machine_.tell(protocol::LostPending{id});
  finish_when_done();
}

std::span<std::byte> ChiefProcess::receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) {
  if (const auto* push = std::get_if<wire::Push>(&head)) return shard_->receive_buffer(from.transport(), *push, bytes);
  return snapshots_.receive_buffer(std::get<wire::StateChunk>(head), bytes);
}

bool ChiefProcess::accept_in_place(PeerConnection& from, const wire::Message& head, std::span<const std::byte> payload,
                                   const transport::BorrowedMemory& borrow) {
  const auto* push = std::get_if<wire::Push>(&head);
  return push != nullptr && shard_->accept_in_place(from.transport(), *push, payload, borrow);
}

void ChiefProcess::received(PeerConnection& from, const wire::Message& head) {
  if (const auto* push = std::get_if<wire::Push>(&head)) return shard_->received(from.transport(), *push);
  snapshots_.received(std::get<wire::StateChunk>(head), machine_.chief().version());
}

void ChiefProcess::sent(PeerConnection&, std::uint64_t ticket) { shard_->sent(ticket); }

void ChiefProcess::to_chief(const wire::Message& message) { server_message(ServerId{0}, message); }

void ChiefProcess::exported(const std::shared_ptr<Exported>& what) { snapshots_.exported(std::move(*what), machine_.chief().version()); }

// The machine's actions ------------------------------------------------------------------------------------------------------------------

void ChiefProcess::carry_out(const protocol::ChiefAction& action) {
  const Instant now = machine_.now();
  if (std::holds_alternative<protocol::Released>(action)) trace_.start(now);
  if (const auto* member = std::get_if<protocol::Joined>(&action)) joined(*member);
  if (const auto event = protocol::to_trace_event(action)) trace_.record(now, *event);
  std::visit(match{[&](const protocol::Send& a) { send(a); }, [&](const protocol::Left& a) { left(a); },
                   [&](const protocol::ServerStuck& a) {
                     const std::string& address = join_.servers().addresses()[a.server.value];
                     end(world_failed(server_stuck_text(a, address, options_.chief.step_limit)));
                   },
                   [&](const protocol::Completed& a) { remote_traffic_.over(a.worker, a.step); },
                   [&](const protocol::Cancelled& a) { remote_traffic_.over(a.worker, a.step); },
                   [&](const protocol::WakeAt& a) { machine_.wake_at(a.when); },
                   [&](const protocol::Returned& a) {
                     for (const trace::EventData& event : protocol::to_trace_events(a)) trace_.record(now, event);
                   },
                   [&](const protocol::Evaluate& a) { snapshots_.request({.version = a.version, .evaluate = a.samples, .at = now}); },
                   [&](const protocol::Checkpoint& a) { snapshots_.request({.version = a.state.version, .save = a.state, .at = now}); },
                   [&](const protocol::Finished& a) { finished(a.why); }, [](const protocol::Joined&) {}, [](const protocol::Counted&) {},
                   [](const protocol::Released&) {}, [](const protocol::Held&) {}, [](const protocol::Dropped&) {},
                   [](const protocol::Idled&) {}, [](const protocol::Discarded&) {}, [](const protocol::Noted&) {}},
             action);
}

void ChiefProcess::joined(const protocol::Joined& joined) {
  const ChiefPeer* peer = peers_.worker(joined.worker);
  const std::uint32_t node = trace_.node_index(joined.node, peer == nullptr ? std::nullopt : peer->node);
  trace_.record(machine_.now(), trace::Joined{.worker = joined.worker, .node = node});
  hooks_.log(fmt::format("{} joined as worker {}", joined.node, joined.worker.value));
}

void ChiefProcess::left(const protocol::Left& left) {
  remote_traffic_.over(left.worker);
  if (const auto text = expulsion_text(peers_.describe(left.worker), left, options_.chief)) hooks_.log(*text);
  peers_.forget(left.worker);
}

void ChiefProcess::send(const protocol::Send& send) {
  if (send.to.role == protocol::Role::server) return send_to_server(ServerId{send.to.id}, send.message);
  ChiefPeer* peer = send.to.role == protocol::Role::pending ? peers_.table().find(send.to.id) : peers_.worker(WorkerId{send.to.id});
  if (peer != nullptr) send_to_worker(*peer, send.message);  // else its loss is told to the machine next
}

void ChiefProcess::send_to_server(ServerId server, const wire::Message& message) {
  if (server.value == 0) {
    if (const auto* update = std::get_if<wire::Apply>(&message)) {
      trace_.record(machine_.now(), trace::Applied{.version = update->version, .parts = update->parts.size(), .rate = update->rate});
      snapshots_.updated();
    }
    return shard_->receive(message);
  }
  if (const auto* release = std::get_if<wire::Release>(&message)) remote_traffic_.released(server, *release);
  if (const ChiefPeer* peer = peers_.server(server)) peer->connection->send(message);
}

void ChiefProcess::send_to_worker(ChiefPeer& peer, const wire::Message& message) {
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) return join_.welcome(peer, *welcome);
  peer.stopped = peer.stopped || std::holds_alternative<wire::Stop>(message);
  if (const auto* order = std::get_if<wire::Order>(&message)) {
    peer.memberships.at(order->worker).ordered = order->step.next();
    remote_traffic_.ordered(*order);
    for (const trace::EventData& event : protocol::to_trace_events(*order)) trace_.record(machine_.now(), event);
  }
  peer.connection->send(message);
}

// The end --------------------------------------------------------------------------------------------------------------------------------

void ChiefProcess::model_not_finite(Version version, const std::string& what) {
  hooks_.log(fmt::format("training diverged: {} of the model of version {} is not finite", what, version.value));
  if (!outcome_) return machine_.tell(protocol::ModelNotFinite{});
  outcome_->why = protocol::EndReason::diverged;  // the outcome is not recorded yet
}

void ChiefProcess::finished(protocol::EndReason why) {
  const protocol::Chief& chief = machine_.chief();
  outcome_.emplace();
  outcome_->why = why;
  outcome_->ended = trace_.trained(machine_.now());
  outcome_->updates = chief.version().value;
  outcome_->samples = chief.ledger().counted();
  outcome_->closed_epochs = chief.ledger().closed_epochs();
  trace_.hold_back();
  shutdown_.begin();
}

void ChiefProcess::finish_when_done() {
  if (!outcome_ || machine_.stopped() || !snapshots_.done()) return;
  trace_.record_outcome(*outcome_);
  switch (shutdown_.next(peers_.has_workers(), peers_.has_servers())) {
    case ShutdownSequence::Next::wait: return;
    case ShutdownSequence::Next::stop_servers: return peers_.send_to_servers(wire::Stop{});
    case ShutdownSequence::Next::end: break;
  }
  outcome_->events = machine_.events();
  outcome_->bytes_pushed = shard_->bytes_pushed() + remote_traffic_.pushed();
  outcome_->bytes_pulled = shard_->bytes_pulled() + remote_traffic_.pulled();
  end(*outcome_);
}

void ChiefProcess::end(Result<protocol::TrainingOutcome> how) {
  if (machine_.stopped()) return;
  if (outcome_) trace_.record_outcome(*outcome_);
  machine_.stop();
  ticker_.stop();
  shutdown_.cancel();
  if (over_) over_(std::move(how));
}

}  // namespace motley::runtime
