// The description of a cluster: nodes, links, servers, faults. Values only, read by the planner and the simulator.
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
  std::uint32_t batch_multiple = 1;  // above 1: a step runs as one piece and is fastest at a multiple of this
  Duration new_batch_size{};         // extra time of the first step of each batch size
  std::optional<Slowdowns> slowdowns;
  std::optional<std::size_t> group;  // index into Spec::groups
  Link link;
};

/// Nodes that share one link to the servers (a rack's uplink, a site's line).
struct Group {
  std::string name;
  Link uplink;
};

/// hang: the device stands still, its process does not: heartbeats go on.
enum class FaultKind { kill, pause, slow, leave, join, partition, hang };

/// The length of a fault without an end: 31 years, which the clocks can represent.
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
  std::vector<Duration> server_distances;       // by server, one way, in addition to link latencies; empty: 0
  std::vector<Fault> faults;                    // in order of time
  Duration heartbeat = from_seconds(1);         // the longest time between two messages of a worker
  Duration silence_deadline = from_seconds(5);  // a worker that is silent for longer is expelled
  Duration step_limit = from_seconds(30);       // a worker is expelled when a step takes longer, and ten times the prediction
};

/// One-way latency of a server in addition to its links; and between two servers in addition to their NICs.
[[nodiscard]] Duration distance_of(const Spec& spec, std::uint32_t server);
[[nodiscard]] Duration distance_between(const Spec& spec, std::uint32_t server, std::uint32_t other);

/// Bytes per second at which one node can receive from several servers: the fastest node's link, or a server's NIC.
[[nodiscard]] double receive_bandwidth(const Spec& spec);

/// Whether the node takes part from the start: its first fault is not `join`.
[[nodiscard]] bool present_at_start(const Spec& spec, NodeId node);

}  // namespace motley::cluster
