// The simulated network. Each node has a link (up and down), each server a NIC, groups of nodes may share an uplink; all full duplex.
//
// Control messages take the path's latency and no bandwidth. A sender's egress sends one slice at a time, by priority, in turns over its
// receivers (constants.h). Then the slice passes pipes (group uplink, the receiver's side), each first-in-first-out at its
// bytes_per_second, all of them at once (cut-through):
//   a pipe's free time f := max(f, head) + bytes/rate;   the slice is through when both f and its tail have passed.
// At most wire::window_bytes are in flight between one pair, as in a real cluster, so that a later slice of higher priority overtakes
// waiting ones.
// Cost: three events per slice, O(log) of the slices waiting.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/spec.h"
#include "wire/message.h"

namespace motley::sim {

/// One side of a connection.
struct Port {
  bool server = false;
  std::uint32_t index = 0;  // of the server or the node
};

/// One slice in flight.
struct BulkMessage {
  Port from;
  Port to;
  std::uint32_t priority = 0;  // lower goes first
  std::uint64_t bytes = 0;
  std::variant<wire::Push, wire::Pulled> content;
};

class Network {
 public:
  /// Requests to call egress_free(), reached() or arrived() at a later time.
  struct Clock {
    std::function<void(Instant, std::uint32_t egress)> wake_egress;
    std::function<void(Instant, std::uint32_t bulk_message)> reach;
    std::function<void(Instant, std::uint32_t bulk_message)> deliver;
  };
  Network(const cluster::Spec& spec, Clock clock);

  void send(Instant now, const BulkMessage& bulk_message);
  /// To be called when wake_egress' time has come.
  void egress_free(Instant now, std::uint32_t egress);
  /// To be called when reach's time has come: the message's head is at the receiver's side of the network. Pipes are shared in this order.
  void reached(Instant now, std::uint32_t id);
  /// To be called when deliver's time has come; returns the message.
  BulkMessage arrived(Instant now, std::uint32_t id);

  [[nodiscard]] Duration latency(Port from, Port to) const;
  /// When a message of `now` between the two leaves: not while one of them is cut off.
  [[nodiscard]] Instant departure(Instant now, Port from, Port to) const;
  /// Drops all slices that wait at this node's egress or for it.
  void drop_node(std::uint32_t node);
  /// No message leaves for or from this node until then.
  void cut_off(std::uint32_t node, Instant until);

 private:
  struct Pipe {
    double bytes_per_second = 0;
    Instant free{};
  };
  struct Waiting {
    std::uint32_t priority;
    std::uint64_t order;
    std::uint32_t bulk_message;
    bool operator>(const Waiting& other) const { return priority != other.priority ? priority > other.priority : order > other.order; }
  };
  struct Lane {  // to one receiver
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
    std::uint32_t in_flight = 0;
    std::uint64_t in_flight_bytes = 0;
    bool in_turn = false;          // is in Egress::turn
    std::uint64_t turn_bytes = 0;  // sent in its turn so far
  };
  struct Egress {
    double bytes_per_second = 0;
    bool busy = false;
    std::deque<std::uint32_t> turn;  // lanes that may send now
    std::vector<Lane> lanes;
  };

  [[nodiscard]] std::uint32_t egress_of(Port port) const { return port.server ? port.index : servers_ + port.index; }
  void queue_lane(Egress& egress, std::uint32_t index);
  void start_next(Instant now, std::uint32_t index);
  [[nodiscard]] Instant through_pipes(Instant head, Instant tail, const BulkMessage& bulk_message);
  [[nodiscard]] Instant cut_until(Port port) const { return port.server ? Instant{} : cut_until_[port.index]; }
  std::uint32_t store(const BulkMessage& bulk_message);

  const cluster::Spec& spec_;
  Clock clock_;
  std::uint32_t servers_;
  std::vector<Egress> egresses_;  // servers first, then nodes
  std::vector<Pipe> server_in_;
  std::vector<Pipe> node_down_;
  std::vector<Pipe> group_up_;
  std::vector<Pipe> group_down_;
  std::vector<Instant> cut_until_;  // by node
  std::vector<BulkMessage> bulk_messages_;
  std::vector<std::uint32_t> unused_;
  std::uint64_t order_ = 0;
};

}  // namespace motley::sim
