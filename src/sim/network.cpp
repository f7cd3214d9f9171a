#include "sim/network.h"

#include <algorithm>

#include "base/check.h"
#include "sim/constants.h"

namespace motley::sim {

Network::Network(const cluster::Spec& spec, Clock clock) : spec_(spec), clock_(std::move(clock)), servers_(spec.servers) {
  const auto nodes = static_cast<std::uint32_t>(spec.nodes.size());
  egresses_.resize(servers_ + nodes);
  for (std::uint32_t s = 0; s < servers_; ++s) {
    egresses_[s].bytes_per_second = spec.server_nic.down_bytes_per_second;
    egresses_[s].lanes.resize(nodes);
    server_in_.push_back({spec.server_nic.up_bytes_per_second, {}});
  }
  for (std::uint32_t n = 0; n < nodes; ++n) {
    egresses_[servers_ + n].bytes_per_second = spec.nodes[n].link.up_bytes_per_second;
    egresses_[servers_ + n].lanes.resize(servers_);
    node_down_.push_back({spec.nodes[n].link.down_bytes_per_second, {}});
  }
  for (const cluster::Group& group : spec.groups) {
    group_up_.push_back({group.uplink.up_bytes_per_second, {}});
    group_down_.push_back({group.uplink.down_bytes_per_second, {}});
  }
  cut_until_.resize(nodes);
}

Duration Network::latency(Port from, Port to) const {
  const Duration distance = (from.server ? cluster::distance_of(spec_, from.index) : Duration{0}) +
                            (to.server ? cluster::distance_of(spec_, to.index) : Duration{0});
  if (from.server && to.server) return from.index == to.index ? Duration{0} : spec_.server_nic.latency + distance;
  const cluster::Node& node = spec_.nodes[from.server ? to.index : from.index];
  return distance + node.link.latency + (node.group ? spec_.groups[*node.group].uplink.latency : Duration{0});
}

Instant Network::departure(Instant now, Port from, Port to) const { return std::max({now, cut_until(from), cut_until(to)}); }

void Network::send(Instant now, const BulkMessage& bulk_message) {
  const std::uint32_t id = store(bulk_message);
  const std::uint32_t egress = egress_of(bulk_message.from);
  Lane& lane = egresses_[egress].lanes[bulk_message.to.index];
  lane.waiting.push({bulk_message.priority, order_++, id});
  queue_lane(egresses_[egress], bulk_message.to.index);
  start_next(now, egress);
}

void Network::queue_lane(Egress& egress, std::uint32_t index) {
  Lane& lane = egress.lanes[index];
  if (lane.in_turn || lane.waiting.empty()) return;
  if (lane.in_flight >= 2 && lane.in_flight_bytes + bulk_messages_[lane.waiting.top().bulk_message].bytes > wire::window_bytes) return;
  lane.in_turn = true;
  if (lane.turn_bytes > 0)
    egress.turn.push_front(index);
  else
    egress.turn.push_back(index);
}

void Network::start_next(Instant now, std::uint32_t index) {
  Egress& egress = egresses_[index];
  if (egress.busy || egress.turn.empty()) return;
  const std::uint32_t lane_index = egress.turn.front();
  Lane& lane = egress.lanes[lane_index];
  const BulkMessage& bulk_message = bulk_messages_[lane.waiting.top().bulk_message];
  const Instant open = departure(now, bulk_message.from, bulk_message.to);
  if (open > now && !bulk_message.from.server) {  // the sender is cut off: try again then
    egress.busy = true;
    clock_.wake_egress(open, index);
    return;
  }
  const std::uint32_t id = lane.waiting.top().bulk_message;
  egress.turn.pop_front();
  lane.in_turn = false;
  lane.waiting.pop();
  ++lane.in_flight;
  lane.in_flight_bytes += bulk_message.bytes;
  lane.turn_bytes += bulk_message.bytes;
  if (lane.turn_bytes >= turn_bytes || lane.waiting.empty()) lane.turn_bytes = 0;  // its turn is over
  const Duration service = from_seconds(static_cast<double>(bulk_message.bytes) / egress.bytes_per_second);
  const Duration path = latency(bulk_message.from, bulk_message.to);
  egress.busy = true;
  clock_.wake_egress(now + service, index);
  clock_.reach(open + path, id);  // to a node that is cut off, it waits in the network
  queue_lane(egress, lane_index);
}

void Network::reached(Instant now, std::uint32_t id) {
  const BulkMessage& bulk_message = bulk_messages_[id];
  const double rate = egresses_[egress_of(bulk_message.from)].bytes_per_second;
  clock_.deliver(through_pipes(now, now + from_seconds(static_cast<double>(bulk_message.bytes) / rate), bulk_message), id);
}

Instant Network::through_pipes(Instant head, Instant tail, const BulkMessage& bulk_message) {
  const auto pass = [&](Pipe& pipe) {
    pipe.free = std::max(pipe.free, head) + from_seconds(static_cast<double>(bulk_message.bytes) / pipe.bytes_per_second);
    tail = std::max(tail, pipe.free);
  };
  const cluster::Node& node = spec_.nodes[bulk_message.from.server ? bulk_message.to.index : bulk_message.from.index];
  if (node.group) pass(bulk_message.from.server ? group_down_[*node.group] : group_up_[*node.group]);
  pass(bulk_message.from.server ? node_down_[bulk_message.to.index] : server_in_[bulk_message.to.index]);
  return tail;
}

void Network::egress_free(Instant now, std::uint32_t egress) {
  egresses_[egress].busy = false;
  start_next(now, egress);
}

BulkMessage Network::arrived(Instant now, std::uint32_t id) {
  const BulkMessage bulk_message = bulk_messages_[id];
  unused_.push_back(id);
  const std::uint32_t egress = egress_of(bulk_message.from);
  Lane& lane = egresses_[egress].lanes[bulk_message.to.index];
  --lane.in_flight;
  lane.in_flight_bytes -= bulk_message.bytes;
  queue_lane(egresses_[egress], bulk_message.to.index);
  start_next(now, egress);
  return bulk_message;
}

void Network::drop_node(std::uint32_t node) {
  const auto empty_lane = [&](Egress& egress, std::uint32_t index) {
    Lane& lane = egress.lanes[index];
    for (; !lane.waiting.empty(); lane.waiting.pop()) unused_.push_back(lane.waiting.top().bulk_message);
    if (lane.in_turn) std::erase(egress.turn, index);
    lane.in_turn = false;
    lane.turn_bytes = 0;
  };
  for (std::uint32_t s = 0; s < servers_; ++s) {
    empty_lane(egresses_[servers_ + node], s);
    empty_lane(egresses_[s], node);
  }
}

void Network::cut_off(std::uint32_t node, Instant until) { cut_until_[node] = std::max(cut_until_[node], until); }

std::uint32_t Network::store(const BulkMessage& bulk_message) {
  if (unused_.empty()) {
    bulk_messages_.push_back(bulk_message);
    return static_cast<std::uint32_t>(bulk_messages_.size() - 1);
  }
  const std::uint32_t id = unused_.back();
  unused_.pop_back();
  bulk_messages_[id] = bulk_message;
  return id;
}

}  // namespace motley::sim
