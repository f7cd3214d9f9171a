#include "config/describe_cluster.h"

#include <fmt/format.h>

#include <algorithm>

namespace motley::config {
namespace {

std::string describe(const cluster::Link& link) {
  return fmt::format("{:.4g} MB/s up, {:.4g} MB/s down, {:g} ms latency", link.up_bytes_per_second / 1e6, link.down_bytes_per_second / 1e6,
                     seconds(link.latency) * 1e3);
}

std::string describe_fault(const cluster::Fault& fault) {
  switch (fault.kind) {
    case cluster::FaultKind::kill: return "is killed";
    case cluster::FaultKind::pause: return fmt::format("pauses for {:g} s", seconds(fault.lasting));
    case cluster::FaultKind::slow: return fmt::format("runs {:g} times slower for {:g} s", fault.factor, seconds(fault.lasting));
    case cluster::FaultKind::leave: return "leaves";
    case cluster::FaultKind::join: return "joins";
    case cluster::FaultKind::partition: return fmt::format("is cut off for {:g} s", seconds(fault.lasting));
    case cluster::FaultKind::hang:
      return fault.lasting < cluster::forever ? fmt::format("hangs for {:g} s", seconds(fault.lasting)) : "hangs for good";
  }
  return {};
}

}  // namespace

std::vector<std::string> describe_workers(const cluster::Spec& spec) {
  std::vector<std::string> lines;
  for (const cluster::Node& node : spec.nodes) {
    std::string line = fmt::format("{}: {:g} samples/s, {:g} ms overhead, {}", node.name, node.samples_per_second,
                                   seconds(node.overhead) * 1e3, describe(node.link));
    if (node.memory_bytes > 0) line += fmt::format(", {:.4g} MB memory", static_cast<double>(node.memory_bytes) / 1e6);
    if (node.jitter > 0) line += fmt::format(", {:g} % jitter", node.jitter * 100);
    if (node.slowdowns) line += fmt::format(", {:g}x slowdowns", node.slowdowns->factor);
    if (node.group) line += fmt::format(", in group {}", spec.groups[*node.group].name);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> describe_network(const cluster::Spec& spec) {
  std::vector<std::string> lines{
      fmt::format("{} {}", spec.servers, (spec.servers == 1 ? "server, " : "servers, each ") + describe(spec.server_nic))};
  for (std::size_t g = 0; g < spec.groups.size(); ++g) {
    const auto members = std::count_if(spec.nodes.begin(), spec.nodes.end(), [&](const cluster::Node& node) { return node.group == g; });
    lines.push_back(fmt::format("group {}: {} worker{} share {}", spec.groups[g].name, members, members == 1 ? "" : "s",
                                describe(spec.groups[g].uplink)));
  }
  return lines;
}

std::vector<std::string> describe_faults(const cluster::Spec& spec) {
  std::vector<std::string> lines;
  for (const cluster::Fault& fault : spec.faults)
    lines.push_back(fmt::format("at {:g} s {} {}", seconds(fault.at), spec.nodes[fault.node.value].name, describe_fault(fault)));
  return lines;
}

}  // namespace motley::config
