#include "sim/world.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "base/match.h"
#include "codec/codec.h"
#include "protocol/trace_events.h"

namespace motley::sim {
namespace {

constexpr Port chief_port{true, 0};  // the chief lives with server 0

Port node_port(std::uint32_t node) { return {false, node}; }
Port server_port(std::uint32_t server) { return {true, server}; }

}  // namespace

World::World(const WorldOptions& options, policy::Strategy strategy, const policy::LrSchedule& schedule, Numbers& numbers,
             trace::Sink& trace)
    : options_(options),
      numbers_(numbers),
      trace_(trace),
      network_(options_.cluster, {[this](Instant when, std::uint32_t egress) { queue_.at(when, EgressFree{egress}); },
                                  [this](Instant when, std::uint32_t bulk_message) { queue_.at(when, BulkMessageReaches{bulk_message}); },
                                  [this](Instant when, std::uint32_t bulk_message) { queue_.at(when, BulkMessageArrives{bulk_message}); }}),
      chief_(options.chief, std::move(strategy), schedule) {
  const auto count = static_cast<std::uint32_t>(options_.cluster.nodes.size());
  check(options_.bf16_transfer.empty() || options_.bf16_transfer.size() == count,
        "it is known of each node what it computes with, or of none");
  options_.bf16_transfer.resize(count);
  check(options_.max_batch.empty() || options_.max_batch.size() == count, "each node has a limit, or none has");
  nodes_.resize(count);
  if (!options_.layer_timing.empty()) {
    check(options_.layer_timing.read.size() == options_.layout.slices.size(), "a cadence has each slice");
    layer_sequence_.emplace(options_.layer_timing);
  }
  for (std::uint32_t n = 0; n < count; ++n) devices_.emplace_back(options_.cluster, NodeId{n}, options_.seed);
  for (std::uint32_t s = 0; s < options_.cluster.servers; ++s) shards_.emplace_back(ServerId{s}, options_.layout.of(ServerId{s}));
}

TrainingOutcome World::run() {
  for (std::uint32_t f = 0; f < options_.cluster.faults.size(); ++f) queue_.at(options_.cluster.faults[f].at, FaultInjected{f});
  for (std::uint32_t n = 0; n < nodes_.size(); ++n)
    if (cluster::present_at_start(options_.cluster, NodeId{n})) start_node(n);
  queue_.at(now_ + options_.cluster.heartbeat, ChiefTick{});
  while (!queue_.empty() && !(ended_ && evaluations_.empty())) {
    auto [when, what] = queue_.pop();
    now_ = when;
    ++outcome_.events;
    check(!options_.max_events || outcome_.events <= *options_.max_events, "a world ends within its bound of events");
    happen(what);
  }
  outcome_.updates = chief_.version().value;
  outcome_.samples = chief_.ledger().counted();
  outcome_.closed_epochs = chief_.ledger().closed_epochs();
  return outcome_;
}

void World::happen(const What& what) {
  std::visit(match{[&](const Control& e) {
                     const ControlMessage control_message = std::move(control_messages_[e.control_message]);
                     unused_control_messages_.push_back(e.control_message);
                     deliver(control_message);
                   },
                   [&](const EgressFree& e) { network_.egress_free(now_, e.egress); },
                   [&](const BulkMessageReaches& e) { network_.reached(now_, e.bulk_message); },
                   [&](const BulkMessageArrives& e) { deliver(network_.arrived(now_, e.bulk_message)); },
                   [&](const ComputeEnds& e) {
                     if (nodes_[e.node].running && nodes_[e.node].serial == e.serial) end_compute(e.node);
                   },
                   [&](const SlicesDue& e) {
                     Node& node = nodes_[e.node];
                     if (!node.running || node.serial != e.serial) return;
                     if (node.paused)
                       node.missed.emplace_back(e);
                     else
                       advance_streaming(e.node);
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
                   [&](const FaultInjected& e) { inject_fault(e.index); },
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
                       tell_chief(protocol::LostPending{e.connection});
                   }},
             what);
}

// Nodes come, go and suffer ------------------------------------------------------------------------------------------------------------

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

void World::inject_fault(std::uint32_t index) {
  const cluster::Fault& fault = options_.cluster.faults[index];
  const std::uint32_t n = fault.node.value;
  Node& node = nodes_[n];
  if (node.paused && (fault.kind == cluster::FaultKind::leave || fault.kind == cluster::FaultKind::join)) {  // nothing moves there now
    node.missed.emplace_back(FaultInjected{index});
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

void World::deliver(const ControlMessage& control_message) {
  if (control_message.to.role == protocol::Role::chief)
    return tell_chief(protocol::Received{control_message.from, control_message.message});
  if (control_message.to.role == protocol::Role::server) return tell_shard(control_message.to.id, control_message.message);
  if (!alive(control_message.connection)) return;
  const std::uint32_t n = connections_[control_message.connection].node;
  if (nodes_[n].paused) {
    control_messages_.push_back(control_message);
    nodes_[n].missed.emplace_back(Control{static_cast<std::uint32_t>(control_messages_.size() - 1)});
    return;
  }
  tell_worker(n, protocol::Arrived{control_message.message});
}

void World::deliver(const BulkMessage& bulk_message) {
  if (bulk_message.to.server) {
    outcome_.bytes_pushed += bulk_message.bytes;
    return tell_shard(bulk_message.to.index, std::get<wire::Push>(bulk_message.content));
  }
  outcome_.bytes_pulled += bulk_message.bytes;
  const wire::Pulled& slice = std::get<wire::Pulled>(bulk_message.content);
  const std::uint32_t connection = connection_of_worker_[slice.worker.value];
  if (!alive(connection)) return;
  if (nodes_[bulk_message.to.index].paused)
    deliver(ControlMessage{protocol::peer(ServerId{bulk_message.from.index}), protocol::peer(slice.worker), connection, slice});
  else
    tell_worker(bulk_message.to.index, protocol::Arrived{slice});
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
  if (slice != nullptr) slice_arrived(node, *slice);
  worker_actions_.clear();
  nodes_[node].machine->step(now_, event, worker_actions_);
  for (const auto& action : worker_actions_) carry_out(node, action);
  const auto& running = nodes_[node].running;
  if (slice != nullptr && running && running->streaming && running->streaming->is_stalled()) advance_streaming(node);
}

void World::carry_out(const protocol::ChiefAction& action) {
  using trace::Kind;
  if (const auto event = protocol::to_trace_events(action)) tell(*event);
  std::visit(match{[&](const protocol::Send& a) { send_from_chief(a); },
                   [&](const protocol::Joined& a) {
                     tell({.kind = Kind::joined, .worker = a.worker, .first = connections_[connection_of_worker_[a.worker.value]].node});
                   },
                   [&](const protocol::Left& a) { numbers_.forget(a.worker); },
                   [&](const protocol::Completed& a) { numbers_.completed(a.worker, a.step); }, [&](const protocol::Counted&) {},
                   [&](const protocol::Returned& a) {
                     for (const trace::Event& event : protocol::to_trace_events(a)) tell(event);
                   },
                   [&](const protocol::Released&) {
                     if (!started_ && options_.chief.max_time) queue_.at(now_ + *options_.chief.max_time, TimeIsUp{});
                     started_ = true;
                   },
                   [&](const protocol::Held&) {}, [&](const protocol::Dropped&) {}, [&](const protocol::Idled&) {},
                   [&](const protocol::Cancelled&) {}, [&](const protocol::Discarded&) {}, [&](const protocol::Noted&) {},
                   [&](const protocol::WakeAt& a) { queue_.at(a.when, TimeIsUp{}); },
                   [&](const protocol::Evaluate& a) { evaluations_.emplace(a.version, a.samples); },
                   [&](const protocol::Checkpoint&) {},  // nobody restarts a simulated chief
                   [&](const protocol::ServerStuck&) {
                     ended_ = true;
                     outcome_.why = protocol::EndReason::nobody_left;
                     outcome_.ended = now_;
                   },
                   [&](const protocol::Finished& a) {
                     ended_ = true;
                     outcome_.why = a.why;
                     outcome_.ended = now_;
                     tell({.kind = Kind::finished, .why = static_cast<std::uint8_t>(a.why), .first = chief_.ledger().counted()});
                   }},
             action);
}

void World::carry_out(std::uint32_t server, const protocol::ShardAction& action) {
  std::visit(match{[&](const protocol::Send& a) { send_from_server(server, a); },
                   [&](const protocol::Commit& a) { numbers_.commit(ServerId{server}, a.update); },
                   [&](const protocol::Free& a) { numbers_.free(a.worker, a.step); }, [&](const protocol::Speculate&) {},
                   [&](const protocol::Snapshot& a) { numbers_.snapshot(ServerId{server}, a); },
                   [&](const protocol::Compare& a) {
                     send_from_server(server,
                                      {protocol::the_chief, wire::AlignmentResult{ServerId{server}, a.worker, a.step,
                                                                                  numbers_.alignment(ServerId{server}, a.worker, a.step)}});
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
  const std::uint32_t connection = send.to.role == protocol::Role::pending ? send.to.id : connection_of_worker_[send.to.id];
  if (const auto* welcome = std::get_if<wire::Welcome>(&send.message)) {
    connection_of_worker_.resize(std::max<std::size_t>(connection_of_worker_.size(), welcome->worker.value + 1));
    connection_of_worker_[welcome->worker.value] = connection;
    connections_[connection].member = welcome->worker;
  }
  if (const auto* order = std::get_if<wire::Order>(&send.message))
    for (const trace::Event& event : protocol::to_trace_events(*order)) tell(event);
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
    const std::uint8_t bits =
        push->bits == fp32_bits && options_.bf16_transfer[n] ? bf16_bits : push->bits;  // gradients are what it computes in
    return network_.send(
        now_, {node_port(n), server_port(send.to.id), options_.layout[push->slice].priority, bytes_of(push->slice, bits), *push});
  }
  const auto id = nodes_[n].machine->id();
  const std::uint32_t connection = nodes_[n].connection;
  ControlMessage control_message{id ? protocol::peer(*id) : protocol::pending_worker(connection), send.to, connection, send.message};
  if (auto* reported = std::get_if<wire::Contributed>(&control_message.message); reported != nullptr && options_.claims)
    options_.claims(n, *reported);
  post(std::move(control_message), node_port(n), chief_port);
}

void World::post(ControlMessage control_message, Port from, Port to) {
  std::uint32_t id = 0;
  if (unused_control_messages_.empty()) {
    id = static_cast<std::uint32_t>(control_messages_.size());
    control_messages_.push_back(std::move(control_message));
  } else {
    id = unused_control_messages_.back();
    unused_control_messages_.pop_back();
    control_messages_[id] = std::move(control_message);
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
  if (std::exchange(outcome_.why, protocol::EndReason::diverged) == protocol::EndReason::diverged) return;
  tell({.kind = trace::Kind::finished, .why = static_cast<std::uint8_t>(outcome_.why), .first = chief_.ledger().counted()});
}

void World::tell(trace::Event event) {
  event.at = now_;
  trace_.on_event(event);
}

}  // namespace motley::sim
