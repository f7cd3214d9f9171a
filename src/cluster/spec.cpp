// Facts that follow from a cluster's description.
#include "cluster/spec.h"

#include <algorithm>

namespace motley::cluster {

Duration distance_of(const Spec& spec, std::uint32_t server) {
  return server < spec.server_distances.size() ? spec.server_distances[server] : Duration{0};
}

Duration distance_between(const Spec& spec, std::uint32_t server, std::uint32_t other) {
  return server == other ? Duration{0} : distance_of(spec, server) + distance_of(spec, other);
}

double receive_bandwidth(const Spec& spec) {
  double widest = 0;
  for (const Node& node : spec.nodes) widest = std::max(widest, node.link.down_bytes_per_second);
  return std::min(widest, spec.server_nic.down_bytes_per_second);
}

bool present_at_start(const Spec& spec, NodeId node) {
  for (const Fault& fault : spec.faults)
    if (fault.node == node) return fault.kind != FaultKind::join;
  return true;
}

}  // namespace motley::cluster
