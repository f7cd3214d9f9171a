// Describes a job's cluster for reports, one line per item.
#pragma once
#include <string>
#include <vector>

#include "cluster/spec.h"

namespace motley::config {

[[nodiscard]] std::vector<std::string> describe_workers(const cluster::Spec& spec);
/// The servers with their NICs, then the groups with their shared uplinks.
[[nodiscard]] std::vector<std::string> describe_network(const cluster::Spec& spec);
[[nodiscard]] std::vector<std::string> describe_faults(const cluster::Spec& spec);

}  // namespace motley::config
