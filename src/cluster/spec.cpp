// What a cluster's description implies about its start.
#include "cluster/spec.h"

namespace motley::cluster {

bool present_at_start(const Spec& spec, NodeId node) {
  for (const Fault& fault : spec.faults)
    if (fault.node == node) return fault.kind != FaultKind::join;
  return true;
}

}  // namespace motley::cluster
