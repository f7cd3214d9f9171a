#include "sim/world.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "base/match.h"
#include "protocol/trace_events.h"
#include "sim/step_and_act.h"

namespace motley::sim {
namespace {

protocol::WorkerOptions worker_options(const WorldOptions& options, std::uint32_t node) {
  protocol::WorkerOptions worker;
  worker.node = options.cluster.nodes[node].name;
  worker.node_index = node;
  const cluster::Node& spec = options.cluster.nodes[node];
  worker.profile.max_batch = options.max_batch.empty() ? 0 : options.max_batch[node];
  worker.profile.batch_multiple = spec.batch_multiple;
  worker.profile.bytes_per_value = options.bf16_transfer[node] ? 2 : 4;
  if (spec.batch_multiple > 1) worker.profile.cost = cluster::affine(spec);  // as a GPU that has warmed up
  for (const store::Slice& slice : options.layout.slices) worker.servers_of_slices.push_back(slice.server);
  worker.heartbeat = options.cluster.heartbeat;
  worker.patience = options.cluster.silence_deadline;
  worker.start_early = !options.layer_timing.empty();
  return worker;
}

}  // namespace

World::World(const WorldOptions& options, policy::Strategy strategy, const policy::LrSchedule& schedule, Numbers& numbers,
             trace::Sink& trace)
    : options_(options),
      numbers_(numbers),
      trace_(trace),
      transfers_(options_.cluster, options_.layout, queue_),
      chief_(options.chief, std::move(strategy), schedule) {
  const auto count = static_cast<std::uint32_t>(options_.cluster.nodes.size());
  check(options_.bf16_transfer.empty() || options_.bf16_transfer.size() == count, "bf16_transfer has each node, or none");
  options_.bf16_transfer.resize(count);
  check(options_.max_batch.empty() || options_.max_batch.size() == count, "max_batch has each node, or none");
  if (!options_.layer_timing.empty()) {
    check(options_.layer_timing.read.size() == options_.layout.slices.size(), "a layer timing has each slice");
    layer_sequence_.emplace(options_.layer_timing);
  }
  const LayerSequence* streamed = layer_sequence_ ? &*layer_sequence_ : nullptr;
  for (std::uint32_t n = 0; n < count; ++n)
    nodes_.push_back({StepDevice(options_.cluster, NodeId{n}, options_.seed, options_.layout.slices.size(), streamed)});
  for (std::uint32_t s = 0; s < options_.cluster.servers; ++s) shards_.emplace_back(ServerId{s}, options_.layout.of(ServerId{s}));
}

TrainingOutcome World::run() {
  for (std::uint32_t f = 0; f < options_.cluster.faults.size(); ++f) queue_.at(options_.cluster.faults[f].at, FaultDue{f});
  for (std::uint32_t n = 0; n < nodes_.size(); ++n)
    if (cluster::present_at_start(options_.cluster, NodeId{n})) start_node(n);
  queue_.at(now_ + options_.cluster.heartbeat, ChiefTick{});
  while (!queue_.empty() && !(ended_ && evaluations_.empty())) {
    auto [when, event] = queue_.pop();
    now_ = when;
    ++outcome_.events;
    check(!options_.max_events || outcome_.events <= *options_.max_events, "a simulation ends within its bound of events");
    happen(event);
  }
  outcome_.updates = chief_.version().value;
  outcome_.samples = chief_.ledger().counted();
  outcome_.closed_epochs = chief_.ledger().closed_epochs();
  return outcome_;
}

void World::happen(const WorldEvent& event) {
  std::visit(match{[&](const ControlArrives& e) { deliver(transfers_.take(e)); },
                   [&](const EgressFree& e) { transfers_.network().egress_free(now_, e.egress); },
                   [&](const BulkMessageReaches& e) { transfers_.network().reached(now_, e.bulk_message); },
                   [&](const BulkMessageArrives& e) { deliver(transfers_.network().arrived(now_, e.bulk_message)); },
                   [&](const ComputeEnds& e) { compute_ends(e); }, [&](const SlicesDue& e) { slices_due(e); },
                   [&](const DeviceMoves& e) { device_moves(e); }, [&](const WorkerTick& e) { worker_tick(e); },
                   [&](const ChiefTick& e) {
                     if (ended_) return;
                     queue_.at(now_ + options_.cluster.heartbeat, e);
                     tell_chief(protocol::Tick{});
                   },
                   [&](const TimeIsUp&) {
                     if (!ended_) tell_chief(protocol::Tick{});
                   },
                   [&](const FaultDue& e) { inject_fault(e.index); }, [&](const PauseEnds& e) { pause_ends(e.node); },
                   [&](const LossNoticed& e) { loss_noticed(e); }},
             event);
}

void World::compute_ends(const ComputeEnds& event) {
  if (nodes_[event.node].device.computes(event.serial)) end_compute(event.node);
}

void World::slices_due(const SlicesDue& event) {
  Node& node = nodes_[event.node];
  if (!node.device.computes(event.serial)) return;
  if (node.paused)
    node.missed.emplace_back(event);
  else
    advance_streaming(event.node);
}

void World::device_moves(const DeviceMoves& event) {
  if (!alive(event.connection)) return;
  const std::uint32_t n = connections_.node(event.connection);
  if (nodes_[n].paused)
    nodes_[n].missed.emplace_back(event);
  else
    tell_worker(n, protocol::DeviceFree{});
}

void World::worker_tick(const WorkerTick& event) {
  if (!alive(event.connection) || ended_) return;
  queue_.at(now_ + options_.cluster.heartbeat, event);
  const std::uint32_t n = connections_.node(event.connection);
  if (!nodes_[n].paused) tell_worker(n, protocol::TimePassed{});
}

void World::loss_noticed(const LossNoticed& event) {
  if (const auto member = connections_.member(event.connection))
    tell_chief(protocol::Lost{*member});
  else
    tell_chief(protocol::LostPending{event.connection});
}

// Processes and faults --------------------------------------------------------------------------------------------------------------

void World::start_node(std::uint32_t n) {
  Node& node = nodes_[n];
  if (node.machine) return;
  node.machine.emplace(worker_options(options_, n));
  node.connection = connections_.open(n);
  queue_.at(now_ + options_.cluster.heartbeat, WorkerTick{node.connection});
  tell_worker(n, protocol::Started{});
}

/// The process dies with everything it has not sent; the chief sees its connection break.
void World::stop_node(std::uint32_t n) {
  Node& node = nodes_[n];
  if (node.machine) queue_.at(transfers_.loss_noticed(now_, node_port(n), chief_port), LossNoticed{node.connection});
  node.machine.reset();
  node.device.reset();
  node.missed.clear();
  transfers_.network().drop_node(n);
}

bool World::alive(std::uint32_t connection) const {
  const Node& node = nodes_[connections_.node(connection)];
  return node.machine && node.connection == connection;
}

void World::inject_fault(std::uint32_t index) {
  const cluster::Fault& fault = options_.cluster.faults[index];
  const std::uint32_t n = fault.node.value;
  Node& node = nodes_[n];
  if (node.paused && (fault.kind == cluster::FaultKind::leave || fault.kind == cluster::FaultKind::join)) {
    node.missed.emplace_back(FaultDue{index});
    return;
  }
  record(trace::FaultInjected{.node = n, .kind = static_cast<std::uint8_t>(fault.kind)});
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
    case cluster::FaultKind::partition: transfers_.network().cut_off(n, now_ + fault.lasting); break;
    case cluster::FaultKind::slow:
    case cluster::FaultKind::hang: break;  // cluster::Device has them
  }
}

/// Unless a later pause goes on.
void World::pause_ends(std::uint32_t n) {
  Node& node = nodes_[n];
  if (now_ < node.paused_until) return;
  node.paused = false;
  const std::deque<WorldEvent> missed = std::exchange(node.missed, {});
  for (const WorldEvent& event : missed) happen(event);
}

// Delivery -----------------------------------------------------------------------------------------------------------------------------

void World::deliver(const ControlMessage& control_message) {
  if (control_message.to.role == protocol::Role::chief)
    return tell_chief(protocol::Received{control_message.from, control_message.message});
  if (control_message.to.role == protocol::Role::server) return tell_shard(control_message.to.id, control_message.message);
  if (!alive(control_message.connection)) return;
  const std::uint32_t n = connections_.node(control_message.connection);
  if (nodes_[n].paused) {
    nodes_[n].missed.emplace_back(transfers_.keep(control_message));
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
  const std::uint32_t connection = connections_.of(slice.worker);
  if (!alive(connection)) return;
  if (nodes_[bulk_message.to.index].paused)
    deliver(ControlMessage{protocol::peer(ServerId{bulk_message.from.index}), protocol::peer(slice.worker), connection, slice});
  else
    tell_worker(bulk_message.to.index, protocol::Arrived{slice});
}

// State machines and their actions -------------------------------------------------------------------------------------------------------

void World::tell_chief(const protocol::ChiefEvent& event) {
  step_and_act(
      chief_actions_, [&](auto& out) { chief_.step(now_, event, out); }, [&](const auto& action) { carry_out(action); });
}

void World::tell_shard(std::uint32_t server, const wire::Message& message) {
  step_and_act(
      shard_actions_, [&](auto& out) { shards_[server].step(message, out); }, [&](const auto& action) { carry_out(server, action); });
}

void World::tell_worker(std::uint32_t node, const protocol::WorkerEvent& event) {
  const auto* arrived = std::get_if<protocol::Arrived>(&event);
  const auto* slice = arrived != nullptr ? std::get_if<wire::Pulled>(&arrived->message) : nullptr;
  if (slice != nullptr) nodes_[node].device.slice_arrived(now_, *slice);
  step_and_act(
      worker_actions_, [&](auto& out) { nodes_[node].machine->step(now_, event, out); },
      [&](const auto& action) { carry_out(node, action); });
  if (slice != nullptr && nodes_[node].device.is_stalled()) advance_streaming(node);
}

void World::carry_out(const protocol::ChiefAction& action) {
  if (const auto event = protocol::to_trace_event(action)) record(*event);
  std::visit(match{[&](const protocol::Send& a) { send_from_chief(a); },
                   [&](const protocol::Joined& a) { record(trace::Joined{.worker = a.worker, .node = connections_.node_of(a.worker)}); },
                   [&](const protocol::Left& a) { numbers_.forget(a.worker); },
                   [&](const protocol::Completed& a) { numbers_.completed(a.worker, a.step); }, [&](const protocol::Counted&) {},
                   [&](const protocol::Returned& a) {
                     for (const trace::EventData& event : protocol::to_trace_events(a)) record(event);
                   },
                   [&](const protocol::Released&) {
                     if (!started_ && options_.chief.max_time) queue_.at(now_ + *options_.chief.max_time, TimeIsUp{});
                     started_ = true;
                   },
                   [&](const protocol::Held&) {}, [&](const protocol::Dropped&) {}, [&](const protocol::Idled&) {},
                   [&](const protocol::Cancelled&) {}, [&](const protocol::Discarded&) {}, [&](const protocol::Noted&) {},
                   [&](const protocol::WakeAt& a) { queue_.at(a.when, TimeIsUp{}); },
                   [&](const protocol::Evaluate& a) { evaluations_.emplace(a.version, a.samples); }, [&](const protocol::Checkpoint&) {},
                   [&](const protocol::ServerStuck&) {
                     ended_ = true;
                     outcome_.why = protocol::EndReason::nobody_left;
                     outcome_.ended = now_;
                   },
                   [&](const protocol::Finished& a) {
                     ended_ = true;
                     outcome_.ended = now_;
                     finished(a.why);
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
            [&](const protocol::Abandon&) { nodes_[node].device.abandon(); }, [&](const protocol::Quit&) { stop_node(node); },
            [&](const protocol::AwaitDevice&) { queue_.at(nodes_[node].device.hangs_until(now_), DeviceMoves{nodes_[node].connection}); }},
      action);
}

// Sending ------------------------------------------------------------------------------------------------------------------------------

void World::send_from_chief(const protocol::Send& send) {
  if (send.to.role == protocol::Role::server) {
    if (send.to.id > 0) return transfers_.send(now_, {protocol::the_chief, send.to, 0, send.message}, chief_port, server_port(send.to.id));
    if (const auto* update = std::get_if<wire::Apply>(&send.message))
      record(trace::Applied{.version = update->version, .parts = update->parts.size(), .rate = update->rate});
    return tell_shard(0, send.message);
  }
  const std::uint32_t connection = send.to.role == protocol::Role::pending ? send.to.id : connections_.of(WorkerId{send.to.id});
  if (const auto* welcome = std::get_if<wire::Welcome>(&send.message)) connections_.admit(connection, welcome->worker);
  if (const auto* order = std::get_if<wire::Order>(&send.message))
    for (const trace::EventData& event : protocol::to_trace_events(*order)) record(event);
  transfers_.send(now_, {protocol::the_chief, send.to, connection, send.message}, chief_port, node_port(connections_.node(connection)));
}

void World::send_from_server(std::uint32_t server, const protocol::Send& send) {
  if (send.to.role == protocol::Role::chief)
    return transfers_.send(now_, {protocol::peer(ServerId{server}), send.to, 0, send.message}, server_port(server), chief_port);
  const wire::Pulled& slice = std::get<wire::Pulled>(send.message);
  transfers_.send(now_, slice, server, connections_.node_of(slice.worker));
}

/// Gradients of a node with bf16 weights are bf16.
void World::send_from_worker(std::uint32_t n, const protocol::Send& send) {
  if (const auto* push = std::get_if<wire::Push>(&send.message)) {
    const std::uint8_t bits = push->bits == fp32_bits && options_.bf16_transfer[n] ? bf16_bits : push->bits;
    return transfers_.send(now_, *push, n, send.to.id, bits);
  }
  const auto id = nodes_[n].machine->id();
  const std::uint32_t connection = nodes_[n].connection;
  ControlMessage message{id ? protocol::peer(*id) : protocol::pending_worker(connection), send.to, connection, send.message};
  if (auto* reported = std::get_if<wire::Contributed>(&message.message); reported != nullptr && options_.claims)
    options_.claims(n, *reported);
  transfers_.send(now_, std::move(message), node_port(n), chief_port);
}

// Steps, evaluations and the end ------------------------------------------------------------------------------------------------------

void World::begin_compute(std::uint32_t n, const wire::Order& order) {
  look_again(n, nodes_[n].device.begin(now_, order));
  record(trace::ComputeBegan{.worker = order.worker, .step = order.step});
}

void World::look_again(std::uint32_t n, const StepDevice::Due& due) {
  const std::uint32_t serial = nodes_[n].device.serial();
  if (due.ends)
    queue_.at(due.when, ComputeEnds{n, serial});
  else
    queue_.at(due.when, SlicesDue{n, serial});
}

void World::advance_streaming(std::uint32_t n) {
  const Step step = nodes_[n].device.step();
  std::vector<SliceId> gradients;
  if (const auto due = nodes_[n].device.advance(now_, gradients)) look_again(n, *due);
  for (const SliceId slice : gradients) tell_worker(n, protocol::Produced{step, slice});
}

void World::end_compute(std::uint32_t n) {
  const StepDevice::FinishedStep done = nodes_[n].device.end(now_);
  StepReport report = numbers_.compute(done.order, done.arrived_slices);
  report.samples = static_cast<std::uint32_t>(done.order.lease.size());
  report.compute = done.compute;
  report.stalled = done.stalled;
  report.new_batch_size = done.new_batch_size;
  report.max_batch = 0;  // an out-of-memory error of this machine says nothing of the simulated device
  record(trace::ComputeEnded{.worker = done.order.worker, .step = done.order.step, .samples = report.samples, .stalled = done.stalled});
  tell_worker(n, protocol::Computed{.step = done.order.step, .report = report});
}

void World::evaluated(Version version, const Evaluation& evaluation) {
  const auto requested = evaluations_.find(version);
  check(requested != evaluations_.end(), "an exported version was requested");
  record(trace::Evaluated{.version = version, .samples = requested->second, .accuracy = evaluation.accuracy, .loss = evaluation.loss});
  evaluations_.erase(requested);
  if (!std::isfinite(evaluation.loss)) model_not_finite();
}

void World::model_not_finite() {
  if (!ended_) return tell_chief(protocol::ModelNotFinite{});
  if (outcome_.why != protocol::EndReason::diverged) finished(protocol::EndReason::diverged);
}

void World::finished(protocol::EndReason why) {
  outcome_.why = why;
  record(trace::Finished{.why = static_cast<std::uint8_t>(why), .samples = chief_.ledger().counted()});
}

}  // namespace motley::sim
