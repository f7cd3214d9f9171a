// A job's cluster in the words of a report, a line for each thing in it.
#pragma once
#include <string>
#include <vector>

#include "cluster/spec.h"

namespace motley::config {

[[nodiscard]] std::vector<std::string> describe_workers(const cluster::Spec& spec);
/// Servers with their NIC, then groups with what they share.
[[nodiscard]] std::vector<std::string> describe_network(const cluster::Spec& spec);
[[nodiscard]] std::vector<std::string> describe_faults(const cluster::Spec& spec);

}  // namespace motley::config
