// The cluster as data: nodes, links, servers, faults. Planner and simulator read the same numbers; nothing here happens.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace motley::cluster {

/// Times at which a device runs `factor` times slower: exponential lengths and gaps with these means.
struct Slowdowns {
  double factor = 4;
  Duration mean_length{};
  Duration mean_gap{};
};

struct Link {
  Duration latency{};                // one way
  double up_bytes_per_second = 0;    // towards the servers; must be > 0
  double down_bytes_per_second = 0;  // from the servers; full duplex
};

enum class DeviceKind { cpu, cuda, emulated };

struct Node {
  std::string name;  // unique in the cluster
  DeviceKind device = DeviceKind::emulated;
  int device_index = 0;              // cuda: which one; cpu: threads, 0 stands for one
  int gpu_percent = 0;               // cuda: of its multiprocessors; 0: all of them
  double samples_per_second = 0;     // beyond the overhead
  Duration overhead{};               // per step, whatever its size
  std::uint64_t memory_bytes = 0;    // 0: no limit
  double jitter = 0;                 // deviation of the log-normal factor on each step's compute time
  std::uint32_t batch_multiple = 1;  // more than 1: a step is done at once, of a multiple of so many samples, as a GPU likes it
  Duration new_batch_size{};         // what the first step of each size takes longer
  std::optional<Slowdowns> slowdowns;
  std::optional<std::size_t> group;  // index into Spec::groups
  Link link;
};

/// Nodes that share one way to the servers (a rack's uplink, a site's line).
struct Group {
  std::string name;
  Link uplink;
};

/// hang: the device stands still, its process does not: heartbeats go on.
enum class FaultKind { kill, pause, slow, leave, join, partition, hang };

/// How long a fault without an end lasts: 31 years, which the clocks can count.
inline constexpr Duration forever = from_seconds(1e9);

struct Fault {
  Instant at{};
  FaultKind kind{};
  NodeId node;
  Duration lasting{};  // pause, slow, partition, hang
  double factor = 1;   // slow: how many times slower
};

struct Spec {
  std::vector<Node> nodes;
  std::vector<Group> groups;
  std::uint32_t servers = 1;
  Link server_nic;                              // of each server; its latency counts between servers
  std::vector<Duration> server_distances;       // by server, one way, beside what is said above; empty: none is far
  std::vector<Fault> faults;                    // in order of time
  Duration heartbeat = from_seconds(1);         // a worker that has nothing else to say says so this often
  Duration silence_deadline = from_seconds(5);  // who is silent for longer is taken for dead
  Duration step_limit = from_seconds(30);       // a step may take so long, or ten times what was predicted, before its worker is expelled
};

/// How much further away a server is than the links say; and how far apart two of them are beside their cards' latency.
[[nodiscard]] Duration distance_of(const Spec& spec, std::uint32_t server);
[[nodiscard]] Duration distance_between(const Spec& spec, std::uint32_t server, std::uint32_t other);

/// Bytes per second of the line on which what several servers send to one node meets: the widest node's, or a server's card.
[[nodiscard]] double receive_bandwidth(const Spec& spec);

/// A node with a `join` fault and nothing before it starts outside and comes in then.
[[nodiscard]] bool present_at_start(const Spec& spec, NodeId node);

}  // namespace motley::cluster
