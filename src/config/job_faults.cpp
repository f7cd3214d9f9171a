// [[cluster.fault]]: reads the faults and checks that they are possible in this order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "config/job_sections.h"
#include "config/toml_nearest.h"

namespace motley::config {
namespace {

using namespace std::string_view_literals;
using cluster::Fault;
using cluster::FaultKind;
using cluster::Spec;

constexpr std::array fault_kinds{Named{"kill"sv, FaultKind::kill}, Named{"pause"sv, FaultKind::pause},
                                 Named{"slow"sv, FaultKind::slow}, Named{"leave"sv, FaultKind::leave},
                                 Named{"join"sv, FaultKind::join}, Named{"partition"sv, FaultKind::partition},
                                 Named{"hang"sv, FaultKind::hang}};
constexpr double latest_s = 1e9;

/// A fault and the table from which it was read.
struct ReadFault {
  Fault fault;
  Reader section;
};

bool lasts(FaultKind kind) {
  return kind == FaultKind::pause || kind == FaultKind::slow || kind == FaultKind::partition || kind == FaultKind::hang;
}

void read_node(Reader& section, const Spec& spec, const std::map<std::string, NodeId>& nodes, Fault& fault) {
  std::string name;
  section.text("node", name, "the node's name", required);
  if (name.empty()) return;
  const auto it = nodes.find(name);
  if (it != nodes.end()) {
    fault.node = it->second;
    return;
  }
  std::vector<std::string> names;
  for (const auto& node : spec.nodes) names.push_back(node.name);
  section.complain("node", "the name of a node of this cluster" + did_you_mean(name, names),
                   "nodes with a count above 1 are called name-1, name-2, ...");
}

/// Only lasting faults take `for`, only slow takes `factor`; elsewhere they are refused. A hang without `for` never ends.
void read_extent(Reader& section, Fault& fault) {
  const bool lasting = lasts(fault.kind), slow = fault.kind == FaultKind::slow;
  std::optional<double> length, factor;
  section.number("for", length, above(0).no_more_than(latest_s).in("seconds"),
                 "pause, slow, partition, hang: seconds that it lasts; a hang without it never ends",
                 lasting && fault.kind != FaultKind::hang ? required : Presence::optional);
  section.number("factor", factor, at_least(1).no_more_than(1e6), "slow: how many times slower the node is",
                 slow ? required : Presence::optional);
  if (length && !lasting) section.complain("for", "no such key here: only pause, slow, partition and hang last");
  if (factor && !slow) section.complain("factor", "no such key here: only slow has one");
  fault.lasting = length ? from_seconds(*length) : fault.kind == FaultKind::hang ? cluster::forever : Duration{0};
  fault.factor = factor.value_or(1);
}

Fault read_fault(Reader& section, const Spec& spec, const std::map<std::string, NodeId>& nodes) {
  Fault fault;
  double at = 0;
  section.number("at", at, at_least(0).no_more_than(latest_s).in("seconds"), "time from the start of training", required);
  fault.at = at_seconds(at);
  section.choice<FaultKind>("kind", fault.kind, fault_kinds, "the fault", required);
  read_node(section, spec, nodes, fault);
  read_extent(section, fault);
  section.finish();
  return fault;
}

/// Only an absent node can join; only a present one can have another fault. `reported` is sorted by time and free of other errors.
void check_order(std::vector<ReadFault>& reported, const Spec& spec) {
  std::map<NodeId, bool> present;
  for (auto& [fault, section] : reported) {
    const bool in = present.try_emplace(fault.node, fault.kind != FaultKind::join).first->second;
    const bool joins = fault.kind == FaultKind::join;
    if (in == joins)
      section.complain("kind", in ? fmt::format("another kind: {} is in the cluster at that time", spec.nodes[fault.node.value].name)
                                  : fmt::format("\"join\": {} is not in the cluster at that time", spec.nodes[fault.node.value].name));
    const bool goes = fault.kind == FaultKind::kill || fault.kind == FaultKind::leave;
    present[fault.node] = joins || (in && !goes);
  }
}

void check_one_starts(Reader& cluster, const Spec& spec) {
  for (std::uint32_t i = 0; i < spec.nodes.size(); ++i)
    if (cluster::present_at_start(spec, NodeId{i})) return;
  if (!spec.nodes.empty())
    cluster.complain_found("fault", "a join as the first fault of every node", "at least one worker present at the start");
}

}  // namespace

void read_faults(Reader& cluster, Spec& spec) {
  std::map<std::string, NodeId> nodes;
  for (std::uint32_t i = 0; i < spec.nodes.size(); ++i) nodes.emplace(spec.nodes[i].name, NodeId{i});
  std::vector<ReadFault> reported;
  for (Reader& section : cluster.sections("fault", {}, "Faults, simulated or injected into the real processes.")) {
    Fault fault = read_fault(section, spec, nodes);
    reported.push_back({fault, section});
  }
  std::stable_sort(reported.begin(), reported.end(), [](const ReadFault& a, const ReadFault& b) { return a.fault.at < b.fault.at; });
  for (const ReadFault& one : reported) spec.faults.push_back(one.fault);
  if (!cluster.clean()) return;  // faults without a valid node or kind cannot be checked
  check_order(reported, spec);
  check_one_starts(cluster, spec);
}

}  // namespace motley::config
