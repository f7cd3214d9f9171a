#include "sim/world.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "base/match.h"
#include "codec/codec.h"
#include "protocol/narration.h"

namespace motley::sim {
namespace {

constexpr Port chief_port{true, 0};  // the chief lives with server 0

Port node_port(std::uint32_t node) { return {false, node}; }
Port server_port(std::uint32_t server) { return {true, server}; }

}  // namespace

World::World(const WorldOptions& options, policy::Strategy strategy, const policy::Schedule& schedule, Numbers& numbers, trace::Sink& trace)
    : options_(options),
      numbers_(numbers),
      trace_(trace),
      network_(options_.cluster, {[this](Instant when, std::uint32_t egress) { queue_.at(when, EgressFree{egress}); },
                                  [this](Instant when, std::uint32_t parcel) { queue_.at(when, ParcelReaches{parcel}); },
                                  [this](Instant when, std::uint32_t parcel) { queue_.at(when, ParcelArrives{parcel}); }}),
      chief_(options.chief, std::move(strategy), schedule) {
  const auto count = static_cast<std::uint32_t>(options_.cluster.nodes.size());
  check(options_.halves.empty() || options_.halves.size() == count, "it is known of each node what it computes with, or of none");
  options_.halves.resize(count);
  check(options_.most_samples.empty() || options_.most_samples.size() == count, "each node has a limit, or none has");
  nodes_.resize(count);
  if (!options_.cadence.empty()) {
    check(options_.cadence.read.size() == options_.layout.slices.size(), "a cadence has each slice");
    score_.emplace(options_.cadence);
  }
  for (std::uint32_t n = 0; n < count; ++n) devices_.emplace_back(options_.cluster, NodeId{n}, options_.seed);
  for (std::uint32_t s = 0; s < options_.cluster.servers; ++s) shards_.emplace_back(ServerId{s}, options_.layout.of(ServerId{s}));
}

Ending World::run() {
  for (std::uint32_t f = 0; f < options_.cluster.faults.size(); ++f) queue_.at(options_.cluster.faults[f].at, FaultStrikes{f});
  for (std::uint32_t n = 0; n < nodes_.size(); ++n)
    if (cluster::present_at_start(options_.cluster, NodeId{n})) start_node(n);
  queue_.at(now_ + options_.cluster.heartbeat, ChiefTick{});
  while (!queue_.empty() && !(ended_ && evaluations_.empty())) {
    auto [when, what] = queue_.pop();
    now_ = when;
    ++ending_.events;
    check(!options_.max_events || ending_.events <= *options_.max_events, "a world ends within its bound of events");
    happen(what);
  }
  ending_.updates = chief_.version().value;
  ending_.samples = chief_.ledger().counted();
  ending_.closed_epochs = chief_.ledger().closed_epochs();
  return ending_;
}

void World::happen(const What& what) {
  std::visit(match{[&](const Control& e) {
                     const Letter letter = std::move(letters_[e.letter]);
                     unused_letters_.push_back(e.letter);
                     deliver(letter);
                   },
                   [&](const EgressFree& e) { network_.egress_free(now_, e.egress); },
                   [&](const ParcelReaches& e) { network_.reached(now_, e.parcel); },
                   [&](const ParcelArrives& e) { deliver(network_.arrived(now_, e.parcel)); },
                   [&](const ComputeEnds& e) {
                     if (nodes_[e.node].running && nodes_[e.node].serial == e.serial) end_compute(e.node);
                   },
                   [&](const SlicesDue& e) {
                     Node& node = nodes_[e.node];
                     if (!node.running || node.serial != e.serial) return;
                     if (node.paused)
                       node.missed.emplace_back(e);
                     else
                       press_on(e.node);
                   },
                   [&](const WorkerTick& e) {
                     if (!alive(e.connection) || ended_) return;
                     queue_.at(now_ + options_.cluster.heartbeat, e);
                     const std::uint32_t node = connections_[e.connection].node;
                     if (!nodes_[node].paused) tell_worker(node, protocol::TimePassed{});
                   },
                   [&](const ChiefTick& e) {
                     if (ended_) return;
                     queue_.at(now_ + options_.cluster.heartbeat, e);
                     tell_chief(protocol::Tick{});
                   },
                   [&](const TimeIsUp&) {
                     if (!ended_) tell_chief(protocol::Tick{});
                   },
                   [&](const FaultStrikes& e) { strike(e.index); },
                   [&](const PauseEnds& e) {
                     if (now_ < nodes_[e.node].paused_until) return;  // another pause goes on
                     nodes_[e.node].paused = false;
                     std::deque<What> missed = std::move(nodes_[e.node].missed);
                     nodes_[e.node].missed.clear();
                     for (const What& late : missed) happen(late);
                   },
                   [&](const DeviceMoves& e) {
                     if (!alive(e.connection)) return;
                     Node& node = nodes_[connections_[e.connection].node];
                     if (node.paused)
                       node.missed.emplace_back(e);
                     else
                       tell_worker(connections_[e.connection].node, protocol::DeviceFree{});
                   },
                   [&](const LossNoticed& e) {
                     if (const auto member = connections_[e.connection].member)
                       tell_chief(protocol::Lost{*member});
                     else
                       tell_chief(protocol::LostGuest{e.connection});
                   }},
             what);
}

// Nodes come, go and suffer ------------------------------------------------------------------------------------------------------------

void World::start_node(std::uint32_t n) {
  Node& node = nodes_[n];
  if (node.machine) return;
  protocol::WorkerOptions worker;
  worker.node = options_.cluster.nodes[n].name;
  worker.most_samples = options_.most_samples.empty() ? 0 : options_.most_samples[n];
  worker.halves = options_.halves[n];
  worker.seat = n;
  worker.grain = options_.cluster.nodes[n].grain;
  if (worker.grain > 1) {  // as one that has measured itself
    worker.samples_per_second = options_.cluster.nodes[n].samples_per_second;
    worker.overhead_s = seconds(options_.cluster.nodes[n].overhead);
  }
  for (const store::Slice& slice : options_.layout.slices) worker.servers_of_slices.push_back(slice.server);
  worker.heartbeat = options_.cluster.heartbeat;
  worker.patience = options_.cluster.silence_deadline;
  worker.start_early = score_.has_value();
  node.machine.emplace(std::move(worker));
  node.connection = static_cast<std::uint32_t>(connections_.size());
  connections_.push_back({n, std::nullopt});
  queue_.at(now_ + options_.cluster.heartbeat, WorkerTick{node.connection});
  tell_worker(n, protocol::Started{});
}

/// The process is gone; what it had not sent yet goes with it, and the chief sees its connection break.
void World::stop_node(std::uint32_t n) {
  Node& node = nodes_[n];
  if (node.machine)
    queue_.at(network_.departure(now_, node_port(n), chief_port) + network_.latency(node_port(n), chief_port),
              LossNoticed{node.connection});
  node.machine.reset();
  node.running.reset();
  node.here.clear();
  node.missed.clear();
  network_.drop_node(n);
}

bool World::alive(std::uint32_t connection) const {
  const Node& node = nodes_[connections_[connection].node];
  return node.machine && node.connection == connection;
}

void World::strike(std::uint32_t index) {
  const cluster::Fault& fault = options_.cluster.faults[index];
  const std::uint32_t n = fault.node.value;
  Node& node = nodes_[n];
  if (node.paused && (fault.kind == cluster::FaultKind::leave || fault.kind == cluster::FaultKind::join)) {  // nothing moves there now
    node.missed.emplace_back(FaultStrikes{index});
    return;
  }
  tell({.kind = trace::Kind::fault, .first = n, .last = static_cast<std::uint64_t>(fault.kind)});
  switch (fault.kind) {
    case cluster::FaultKind::kill: stop_node(n); break;
    case cluster::FaultKind::pause:
      node.paused = true;
      node.paused_until = std::max(node.paused_until, now_ + fault.lasting);
      queue_.at(now_ + fault.lasting, PauseEnds{n});
      break;
    case cluster::FaultKind::leave:
      if (node.machine) tell_worker(n, protocol::AskedToLeave{});
      break;
    case cluster::FaultKind::join: start_node(n); break;
    case cluster::FaultKind::partition: network_.cut_off(n, now_ + fault.lasting); break;
    case cluster::FaultKind::slow:
    case cluster::FaultKind::hang: break;  // the device knows
  }
}

// Delivery -----------------------------------------------------------------------------------------------------------------------------

void World::deliver(const Letter& letter) {
  if (letter.to.role == protocol::Role::chief) return tell_chief(protocol::Received{letter.from, letter.message});
  if (letter.to.role == protocol::Role::server) return tell_shard(letter.to.id, letter.message);
  if (!alive(letter.connection)) return;
  const std::uint32_t n = connections_[letter.connection].node;
  if (nodes_[n].paused) {
    letters_.push_back(letter);
    nodes_[n].missed.emplace_back(Control{static_cast<std::uint32_t>(letters_.size() - 1)});
    return;
  }
  tell_worker(n, protocol::Arrived{letter.message});
}

void World::deliver(const Parcel& parcel) {
  if (parcel.to.server) {
    ending_.bytes_pushed += parcel.bytes;
    return tell_shard(parcel.to.index, std::get<wire::Push>(parcel.content));
  }
  ending_.bytes_pulled += parcel.bytes;
  const wire::Pulled& slice = std::get<wire::Pulled>(parcel.content);
  const std::uint32_t connection = connection_of_worker_[slice.worker.value];
  if (!alive(connection)) return;
  if (nodes_[parcel.to.index].paused)
    deliver(Letter{protocol::peer(ServerId{parcel.from.index}), protocol::peer(slice.worker), connection, slice});
  else
    tell_worker(parcel.to.index, protocol::Arrived{slice});
}

// Machines and their answers -----------------------------------------------------------------------------------------------------------

void World::tell_chief(const protocol::ChiefEvent& event) {
  chief_actions_.clear();
  chief_.step(now_, event, chief_actions_);
  for (const auto& action : chief_actions_) carry_out(action);
}

void World::tell_shard(std::uint32_t server, const wire::Message& message) {
  shard_actions_.clear();
  shards_[server].step(message, shard_actions_);
  for (const auto& action : shard_actions_) carry_out(server, action);
}

void World::tell_worker(std::uint32_t node, const protocol::WorkerEvent& event) {
  const auto* arrived = std::get_if<protocol::Arrived>(&event);
  const auto* slice = arrived != nullptr ? std::get_if<wire::Pulled>(&arrived->message) : nullptr;
  if (slice != nullptr) land(node, *slice);
  worker_actions_.clear();
  nodes_[node].machine->step(now_, event, worker_actions_);
  for (const auto& action : worker_actions_) carry_out(node, action);
  const auto& running = nodes_[node].running;
  if (slice != nullptr && running && running->streaming && running->streaming->stands()) press_on(node);
}

void World::carry_out(const protocol::ChiefAction& action) {
  using trace::Kind;
  if (const auto event = protocol::narrated(action)) tell(*event);
  std::visit(match{[&](const protocol::Send& a) { send_from_chief(a); },
                   [&](const protocol::Joined& a) {
                     tell({.kind = Kind::joined, .worker = a.worker, .first = connections_[connection_of_worker_[a.worker.value]].node});
                   },
                   [&](const protocol::Left& a) { numbers_.forget(a.worker); },
                   [&](const protocol::Completed& a) { numbers_.completed(a.worker, a.step); }, [&](const protocol::Counted&) {},
                   [&](const protocol::Returned& a) {
                     for (const trace::Event& event : protocol::narrated(a)) tell(event);
                   },
                   [&](const protocol::Released&) {
                     if (!started_ && options_.chief.max_time) queue_.at(now_ + *options_.chief.max_time, TimeIsUp{});
                     started_ = true;
                   },
                   [&](const protocol::Held&) {}, [&](const protocol::Dropped&) {}, [&](const protocol::Rested&) {},
                   [&](const protocol::Cancelled&) {}, [&](const protocol::Discarded&) {}, [&](const protocol::Noted&) {},
                   [&](const protocol::WakeAt& a) { queue_.at(a.when, TimeIsUp{}); },
                   [&](const protocol::Evaluate& a) { evaluations_.emplace(a.version, a.samples); },
                   [&](const protocol::Checkpoint&) {},  // nobody restarts a simulated chief
                   [&](const protocol::ServerStuck&) {
                     ended_ = true;
                     ending_.why = protocol::Ended::nobody_left;
                     ending_.ended = now_;
                   },
                   [&](const protocol::Finished& a) {
                     ended_ = true;
                     ending_.why = a.why;
                     ending_.ended = now_;
                     tell({.kind = Kind::finished, .why = static_cast<std::uint8_t>(a.why), .first = chief_.ledger().counted()});
                   }},
             action);
}

void World::carry_out(std::uint32_t server, const protocol::ShardAction& action) {
  std::visit(match{[&](const protocol::Send& a) { send_from_server(server, a); },
                   [&](const protocol::Commit& a) { numbers_.commit(ServerId{server}, a.update); },
                   [&](const protocol::Free& a) { numbers_.free(a.worker, a.step); },
                   [&](const protocol::Snapshot& a) { numbers_.snapshot(ServerId{server}, a); },
                   [&](const protocol::Compare& a) {
                     send_from_server(server, {protocol::the_chief, wire::Judged{ServerId{server}, a.worker, a.step,
                                                                                 numbers_.along(ServerId{server}, a.worker, a.step)}});
                   },
                   [&](const protocol::ForgetSent& a) { numbers_.forget_sent(ServerId{server}, a.worker); },
                   [&](const protocol::ProveAlive&) {
                     send_from_server(server, {protocol::the_chief, wire::Probe{ServerId{server}}});
                   },
                   [&](const protocol::ExportNow& a) {
                     if (a.state) return;
                     if (const auto evaluation = numbers_.exported(ServerId{server}, a.version)) evaluated(a.version, *evaluation);
                   }},
             action);
}

void World::carry_out(std::uint32_t node, const protocol::WorkerAction& action) {
  std::visit(
      match{[&](const protocol::Send& a) { send_from_worker(node, a); }, [&](const protocol::Compute& a) { begin_compute(node, a.order); },
            [&](const protocol::Abandon&) { nodes_[node].running.reset(); }, [&](const protocol::Quit&) { stop_node(node); },
            [&](const protocol::AwaitDevice&) { queue_.at(devices_[node].hangs_until(now_), DeviceMoves{nodes_[node].connection}); }},
      action);
}

// Sending ------------------------------------------------------------------------------------------------------------------------------

void World::send_from_chief(const protocol::Send& send) {
  if (send.to.role == protocol::Role::server) {
    if (send.to.id == 0) {
      if (const auto* update = std::get_if<wire::Apply>(&send.message))
        tell({.kind = trace::Kind::applied, .version = update->version, .first = update->parts.size(), .value = update->rate});
      return tell_shard(0, send.message);
    }
    return post({protocol::the_chief, send.to, 0, send.message}, chief_port, server_port(send.to.id));
  }
  const std::uint32_t connection = send.to.role == protocol::Role::guest ? send.to.id : connection_of_worker_[send.to.id];
  if (const auto* welcome = std::get_if<wire::Welcome>(&send.message)) {
    connection_of_worker_.resize(std::max<std::size_t>(connection_of_worker_.size(), welcome->worker.value + 1));
    connection_of_worker_[welcome->worker.value] = connection;
    connections_[connection].member = welcome->worker;
  }
  if (const auto* order = std::get_if<wire::Order>(&send.message))
    for (const trace::Event& event : protocol::narrated(*order)) tell(event);
  post({protocol::the_chief, send.to, connection, send.message}, chief_port, node_port(connections_[connection].node));
}

void World::send_from_server(std::uint32_t server, const protocol::Send& send) {
  if (send.to.role == protocol::Role::chief)
    return post({protocol::peer(ServerId{server}), send.to, 0, send.message}, server_port(server), chief_port);
  const wire::Pulled& slice = std::get<wire::Pulled>(send.message);
  const std::uint32_t n = connections_[connection_of_worker_[slice.worker.value]].node;
  network_.send(now_, {server_port(server), node_port(n), options_.layout[slice.slice].priority, bytes_of(slice.slice, slice.bits), slice});
}

void World::send_from_worker(std::uint32_t n, const protocol::Send& send) {
  if (const auto* push = std::get_if<wire::Push>(&send.message)) {
    const std::uint8_t bits = push->bits == plain_bits && options_.halves[n] ? half_bits : push->bits;  // gradients are what it computes in
    return network_.send(
        now_, {node_port(n), server_port(send.to.id), options_.layout[push->slice].priority, bytes_of(push->slice, bits), *push});
  }
  const auto id = nodes_[n].machine->id();
  const std::uint32_t connection = nodes_[n].connection;
  Letter letter{id ? protocol::peer(*id) : protocol::guest(connection), send.to, connection, send.message};
  if (auto* said = std::get_if<wire::Contributed>(&letter.message); said != nullptr && options_.claims) options_.claims(n, *said);
  post(std::move(letter), node_port(n), chief_port);
}

void World::post(Letter letter, Port from, Port to) {
  std::uint32_t id = 0;
  if (unused_letters_.empty()) {
    id = static_cast<std::uint32_t>(letters_.size());
    letters_.push_back(std::move(letter));
  } else {
    id = unused_letters_.back();
    unused_letters_.pop_back();
    letters_[id] = std::move(letter);
  }
  queue_.at(network_.departure(now_, from, to) + network_.latency(from, to), Control{id});
}

std::uint64_t World::bytes_of(SliceId slice, std::uint8_t bits) {
  auto& bytes = slice_bytes_[bits];
  if (bytes.empty()) {
    for (const store::Slice& s : options_.layout.slices) {
      const auto codec = codec::make(s.bits(bits));
      check(codec.ok(), "a strategy asks for bits that there is a codec for");
      bytes.push_back((*codec)->encoded_bytes(s.count));
    }
  }
  return bytes[slice.value];
}

void World::evaluated(Version version, const Evaluation& evaluation) {
  const auto asked = evaluations_.find(version);
  check(asked != evaluations_.end(), "what is exported was asked for");
  tell({.kind = trace::Kind::evaluated,
        .version = version,
        .first = asked->second,
        .value = evaluation.accuracy,
        .second = evaluation.loss});
  evaluations_.erase(asked);
  if (!std::isfinite(evaluation.loss)) model_not_finite();
}

void World::model_not_finite() {
  if (!ended_) return tell_chief(protocol::ModelNotFinite{});
  if (std::exchange(ending_.why, protocol::Ended::diverged) == protocol::Ended::diverged) return;
  tell({.kind = trace::Kind::finished, .why = static_cast<std::uint8_t>(ending_.why), .first = chief_.ledger().counted()});
}

void World::tell(trace::Event event) {
  event.at = now_;
  trace_.told(event);
}

}  // namespace motley::sim
