// The chief's process and what its peers may send: each connection is a newcomer, a worker or a server, and speaks for itself alone.
// Whatever does not pass closes its connection, before it reaches the chief's machine, the shard or a buffer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/match.h"
#include "runtime/chief_process.h"
#include "runtime/random_key.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

constexpr std::uint32_t most_replaced = 8;  // a correct worker says Hello again only when its Welcome takes longer than its patience
constexpr std::uint32_t most_echoes = 64;   // a server asks five times how far away it is

/// The member that a worker's message speaks for.
std::optional<WorkerId> speaker(const wire::Message& message) {
  return std::visit(
      []<class T>(const T& m) -> std::optional<WorkerId> {
        constexpr bool of_a_worker = std::is_same_v<T, wire::Contributed> || std::is_same_v<T, wire::Began> ||
                                     std::is_same_v<T, wire::Heartbeat> || std::is_same_v<T, wire::Leaving> ||
                                     std::is_same_v<T, wire::Attach> || std::is_same_v<T, wire::Push>;
        if constexpr (of_a_worker) return m.worker;
        return std::nullopt;
      },
      message);
}

/// What is no number, or less than none, tells a strategy nothing.
wire::Contributed tamed(wire::Contributed reported) {
  for (double* recorded : {&reported.report.residual, &reported.report.update_norm})
    if (!std::isfinite(*recorded) || *recorded < 0) *recorded = 0;
  return reported;
}

}  // namespace

wire::Objection ChiefProcess::objection(const Link& link, wire::Lane lane, const wire::Message& message) const {
  if (auto why = wire::objection(link.is, lane, message)) return why;
  return link.is == wire::Sender::server ? objection_to_server(link, message) : objection_to_identity(link, message);
}

wire::Objection ChiefProcess::objection_to_identity(const Link& link, const wire::Message& message) const {
  if (const auto* hello = std::get_if<wire::Hello>(&message)) return objection_to_hello(link, *hello);
  const auto worker = speaker(message);
  const bool not_yet = worker == wire::no_worker && std::holds_alternative<wire::Heartbeat>(message);
  if (worker && !not_yet) return objection_to_worker(link, *worker, message);
  return {};
}

/// Its words about steps come in the order of the steps, each once, and only of what it was told to do.
wire::Objection ChiefProcess::objection_to_worker(const Link& link, WorkerId worker, const wire::Message& message) const {
  const auto found = link.workers.find(worker);
  if (found == link.workers.end()) return fmt::format("its {} is worker {}'s, which it is not", wire::name_of(message), worker.value);
  if (link.left && std::holds_alternative<wire::Leaving>(message)) return "it has said Leaving twice";
  const Member& member = found->second;
  const auto out_of_order = [&](Step step, Step first) -> wire::Objection {
    if (first <= step && step < member.ordered) return {};
    return fmt::format("its {} is of step {}, expected {} to {}: those that it was ordered", wire::name_of(message), step.value,
                       first.value, member.ordered.value);
  };
  if (const auto* began = std::get_if<wire::Began>(&message)) return out_of_order(began->step, member.began);
  if (const auto* push = std::get_if<wire::Push>(&message)) return out_of_order(push->step, Step{});
  const auto* reported = std::get_if<wire::Contributed>(&message);
  if (reported == nullptr) return {};
  if (reported->base > chief_.version())
    return fmt::format("it has contributed on version {}, the newest is {}", reported->base.value, chief_.version().value);
  return out_of_order(reported->step, member.contributed);
}

wire::Objection ChiefProcess::objection_to_hello(const Link& link, const wire::Hello& hello) const {
  if (awaiting_job_.contains(link.id)) return "its Hello comes before its JobDescription";
  if (hello.node != link.name) return fmt::format("it said that it was \"{}\" and now that it is \"{}\"", link.name, hello.node);
  if (hello.node_index != wire::no_node_index && (!link.node || hello.node_index != link.node->value))
    return fmt::format("it claims seat {}, which is not its node's", hello.node_index);
  if (link.left) return "its Hello comes after its Leaving";
  if (hello.attempt <= link.attempt) return fmt::format("its Hello number {} comes after number {}", hello.attempt, link.attempt);
  if (link.replaced >= most_replaced) return fmt::format("it became a member {} times without need", link.replaced);
  return {};
}

/// Each server is who first said so, as long as its connection lasts. Who knows the token may say so: nothing else tells servers apart.
wire::Objection ChiefProcess::objection_to_server(const Link& link, const wire::Message& message) const {
  const auto title = server_called(link.name);
  const auto as = [&](ServerId server) -> wire::Objection {
    if (link.server == server) return {};
    return fmt::format("its {} is server {}'s, which it is not", wire::name_of(message), server.value);
  };
  return std::visit(match{[&](const wire::ServerHello& m) -> wire::Objection {
                            const bool free =
                                m.server.value > 0 && m.server.value < options_.layout.servers && !by_server_.contains(m.server);
                            if (m.server != title || link.server || !free)
                              return fmt::format("it wants to be server {}, which is not free or not what it said before", m.server.value);
                            if (const auto address = transport::parse_address(m.address); !address) return address.error().message;
                            return {};
                          },
                          [&](const wire::Echo&) -> wire::Objection {
                            if (link.echoes < most_echoes) return {};
                            return fmt::format("it has asked more than {} times how far away it is", most_echoes);
                          },
                          [&](const wire::SlicePlacement& m) -> wire::Objection {
                            const bool asked = link.server && by_server_.size() + 1 == options_.layout.servers;
                            if (asked && !link.placed && m.head_starts == head_starts_) return {};
                            return "it asks for slices that were not placed so, or more than once";
                          },
                          [&](const wire::Gathered& m) { return as(m.server); },
                          [&](const wire::AlignmentResult& m) { return as(m.server); }, [&](const wire::Probe& m) { return as(m.server); },
                          [&](const wire::StateChunk& m) { return as(m.server); }, [](const auto&) -> wire::Objection { return {}; }},
                    message);
}

bool ChiefProcess::is_member(const Link& link) const {
  return std::any_of(link.workers.begin(), link.workers.end(), [&](const auto& one) { return chief_.membership().contains(one.first); });
}

void ChiefProcess::join_requested(Link& link, const wire::JoinRequest& join_request) {
  link.name = join_request.node;
  const auto& nodes = options_.cluster.nodes;
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const cluster::Node& node) { return node.name == join_request.node; });
  if (found != nodes.end()) {
    link.node = NodeId{static_cast<std::uint32_t>(found - nodes.begin())};
    if (auto shape = links_to_.towards(*link.node)) link.connection->reshape(std::move(*shape));
  }
  const auto server = server_called(join_request.node);  // it needs no addresses, and the others wait for it
  link.is = server ? wire::Sender::server : wire::Sender::worker;
  if (server) link.connection->reshape({.latency = cluster::distance_between(options_.cluster, 0, server->value)});
  if (server || by_server_.size() + 1 == options_.layout.servers)
    send_job(link);
  else
    awaiting_job_.insert(link.id);
}

/// The machine records what it hears: of each membership it hears one Hello, however often a peer repeats it while it waits.
void ChiefProcess::sent_hello(Link& link, const wire::Hello& hello) {
  link.attempt = hello.attempt;
  if (link.awaits_welcome || link.stopped) return;
  link.replaced += is_member(link) ? 1 : 0;
  link.awaits_welcome = true;
  tell(protocol::Received{protocol::pending_worker(link.id), hello});
}

/// The last word on a connection. Of a worker that is no member any more it changes nothing.
void ChiefProcess::sent_leaving(Link& link, const wire::Leaving& leaving) {
  link.left = true;
  if (chief_.membership().contains(leaving.worker)) on_worker_message(link, leaving.worker, leaving);
}

void ChiefProcess::on_worker_message(Link& link, WorkerId worker, wire::Message message) {
  Member& member = link.workers.at(worker);
  if (const auto* began = std::get_if<wire::Began>(&message)) {
    member.began = began->step.next();
    record_trace(trace::ComputeBegan{.worker = worker, .step = began->step});
  }
  if (auto* reported = std::get_if<wire::Contributed>(&message)) {
    *reported = tamed(*reported);
    member.contributed = reported->step.next();
    record_trace(trace::ComputeEnded{
        .worker = worker, .step = reported->step, .samples = reported->report.samples, .stalled = reported->report.stalled});
  }
  tell(protocol::Received{protocol::peer(worker), std::move(message)});
}

/// Servers hear of it first: what its key is, so that nobody else attaches as it.
void ChiefProcess::welcome(Link& link, wire::Welcome welcome) {
  welcome.key = random_key();
  welcome.attempt = link.attempt;  // the last of those that waited for this answer
  link.awaits_welcome = false;
  link.workers.emplace(welcome.worker, Member{});
  by_worker_[welcome.worker] = &link;
  for (const auto& [server, its_link] : by_server_) its_link->connection->send(wire::Admitted{welcome.worker, welcome.key});
  link.connection->send(welcome);
}

/// Workers that prepare or wait for others send a Heartbeat meanwhile; servers are quiet between updates.
void ChiefProcess::expel_silent_pending() {
  const Instant now = clock_.now();
  for (auto& [connection, link] : links_)
    if (!link.server && now - link.last_heard > options_.join_deadline && !is_member(link))
      expel(link, fmt::format("it is no member and has sent nothing for {:.0f} s", seconds(options_.join_deadline)));
}

}  // namespace motley::runtime
