#include "runtime/chief_validation.h"

#include <fmt/format.h>

#include <charconv>

#include "base/match.h"
#include "transport/address.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

constexpr std::uint32_t most_replaced = 8;  // a correct worker repeats its Hello only when its Welcome takes longer than its timeout
constexpr std::uint32_t most_echoes = 64;   // a server measures its distance five times

/// The member that a worker's message is about.
std::optional<WorkerId> member_of(const wire::Message& message) {
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

/// Messages about steps come in the order of the steps, each once, and only about orders.
wire::Objection objection_to_member(const ChiefPeer& from, WorkerId worker, const wire::Message& message, Version newest) {
  const auto found = from.memberships.find(worker);
  if (found == from.memberships.end()) return fmt::format("its {} is for worker {}, which it is not", wire::name_of(message), worker.value);
  if (from.left && std::holds_alternative<wire::Leaving>(message)) return "it sent Leaving twice";
  const ChiefPeer::Steps& steps = found->second;
  const auto out_of_order = [&](Step step, Step first) -> wire::Objection {
    if (first <= step && step < steps.ordered) return {};
    return fmt::format("its {} is for step {}, expected {} to {}: those that it was ordered", wire::name_of(message), step.value,
                       first.value, steps.ordered.value);
  };
  if (const auto* began = std::get_if<wire::Began>(&message)) return out_of_order(began->step, steps.began);
  if (const auto* push = std::get_if<wire::Push>(&message)) return out_of_order(push->step, Step{});
  const auto* reported = std::get_if<wire::Contributed>(&message);
  if (reported == nullptr) return {};
  if (reported->base > newest) return fmt::format("it has contributed on version {}, the newest is {}", reported->base.value, newest.value);
  return out_of_order(reported->step, steps.contributed);
}

wire::Objection objection_to_hello(const ChiefPeer& from, const wire::Hello& hello) {
  if (from.awaits_job) return "its Hello comes before its JobDescription";
  if (hello.node != from.name) return fmt::format("its node was \"{}\" and is now \"{}\"", from.name, hello.node);
  if (hello.node_index != wire::no_node_index && (!from.node || hello.node_index != from.node->value))
    return fmt::format("it claims node index {}, which is not its node's", hello.node_index);
  if (from.left) return "its Hello comes after its Leaving";
  if (hello.attempt <= from.attempt) return fmt::format("its Hello number {} comes after number {}", hello.attempt, from.attempt);
  if (from.memberships_replaced >= most_replaced) return fmt::format("it became a member {} times without need", from.memberships_replaced);
  return {};
}

wire::Objection objection_to_worker(const ChiefPeer& from, const wire::Message& message, Version newest) {
  if (const auto* hello = std::get_if<wire::Hello>(&message)) return objection_to_hello(from, *hello);
  const auto worker = member_of(message);
  const bool pending = worker == wire::no_worker && std::holds_alternative<wire::Heartbeat>(message);
  return worker && !pending ? objection_to_member(from, *worker, message, newest) : std::nullopt;
}

/// The first process that registers as a server is that server while its connection lasts. The token alone allows it: nothing else tells
/// servers apart.
wire::Objection objection_to_server(const ChiefPeer& from, const wire::Message& message, const ServerPlacement& servers) {
  const auto is_server = [&](ServerId server) -> wire::Objection {
    if (from.server == server) return {};
    return fmt::format("its {} is for server {}, which it is not", wire::name_of(message), server.value);
  };
  return std::visit(
      match{[&](const wire::ServerHello& m) -> wire::Objection {
              if (m.server != server_named(from.name) || from.server || !servers.is_free(m.server))
                return fmt::format("it wants to be server {}, which is taken or is not the one of its JoinRequest", m.server.value);
              if (const auto address = transport::parse_address(m.address); !address) return address.error().message;
              return {};
            },
            [&](const wire::Echo&) -> wire::Objection {
              if (from.echoes < most_echoes) return {};
              return fmt::format("it has measured its distance more than {} times", most_echoes);
            },
            [&](const wire::SlicePlacement& m) -> wire::Objection {
              const bool expected = from.server && servers.complete() && !from.placed;
              if (expected && m.head_starts == servers.head_starts()) return {};
              return "it asks for slices that were not placed so, or more than once";
            },
            [&](const wire::Gathered& m) { return is_server(m.server); },
            [&](const wire::AlignmentResult& m) { return is_server(m.server); }, [&](const wire::Probe& m) { return is_server(m.server); },
            [&](const wire::StateChunk& m) { return is_server(m.server); }, [](const auto&) -> wire::Objection { return {}; }},
      message);
}

}  // namespace

wire::Objection objection(const ChiefPeer& from, wire::Lane lane, const wire::Message& message, const ChiefFacts& facts) {
  if (auto why = wire::objection(from.role, lane, message)) return why;
  return from.role == wire::Sender::server ? objection_to_server(from, message, facts.servers)
                                           : objection_to_worker(from, message, facts.version);
}

std::optional<ServerId> server_named(std::string_view name) {
  constexpr std::string_view title = "server ";
  ServerId server;
  if (!name.starts_with(title)) return std::nullopt;
  name.remove_prefix(title.size());
  const auto [stop, failure] = std::from_chars(name.data(), name.data() + name.size(), server.value);
  if (failure != std::errc{} || stop != name.data() + name.size()) return std::nullopt;
  return server;
}

}  // namespace motley::runtime
