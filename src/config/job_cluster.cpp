// [cluster] and its nodes, links, servers and groups. A node's link takes absent keys from [cluster.link].
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "cluster/constants.h"
#include "config/job_sections.h"
#include "config/toml_nearest.h"

namespace motley::config {
namespace {

using cluster::DeviceKind;
using cluster::Link;
using cluster::Node;
using cluster::Spec;

constexpr double gigabit = 125e6;            // bytes per second
constexpr double switch_latency_s = 0.0002;  // one way through an Ethernet switch and two kernels
constexpr std::size_t most_nodes = 100'000;
constexpr double longest_s = 1e6;  // twelve days: a longer time is a typing error

/// `bandwidth` sets both directions, `up` and `down` one each; a direction that is not given keeps its value.
void read_link(Reader& section, Link& link, Presence bandwidth = {}) {
  const bool one_way = section.has("up") || section.has("down");
  if (section.has("bandwidth") && one_way)
    section.complain_found("bandwidth", "bandwidth beside up or down", "either bandwidth (both ways), or up and down");
  double both = link.up_bytes_per_second;
  section.rate("bandwidth", both, "of the link in each direction", one_way ? Presence::optional : bandwidth);
  if (section.has("bandwidth")) link.up_bytes_per_second = link.down_bytes_per_second = both;
  section.rate("up", link.up_bytes_per_second, "from the node to the servers");
  section.rate("down", link.down_bytes_per_second, "from the servers to the node");
  section.seconds("latency_s", link.latency, at_least(0).no_more_than(longest_s), "one way");
}

/// "cpu", "cpu:THREADS", "emulated" or "cuda:N".
void read_device(Reader& section, Node& node) {
  std::string text = "emulated";
  section.text("device", text,
               "the device that computes: \"cpu\", \"cpu:THREADS\", \"cuda:N\", or \"emulated\", which computes on the CPU and takes as "
               "long as described here");
  if (text == "emulated") return;
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  node.device = kind == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
  node.device_index = 1;  // threads of a cpu
  if (text == "cpu") return;
  constexpr int most = 1024;  // threads, or devices
  const char* end = text.data() + text.size();
  const char* number = colon == std::string::npos ? end : text.data() + colon + 1;
  const auto [stop, failure] = std::from_chars(number, end, node.device_index);
  const int least = node.device == DeviceKind::cpu ? 1 : 0;
  if ((kind != "cpu" && kind != "cuda") || failure != std::errc{} || stop != end || node.device_index < least || node.device_index >= most)
    section.complain("device", "\"cpu\", \"cpu:THREADS\", \"emulated\" or \"cuda:N\" with the number of the GPU, such as \"cuda:0\"");
}

void read_slowdowns(Reader section, Node& node) {
  // A lower limit, because a run with shorter ones would hold almost nothing but changes of speed.
  const Bounds length = above(0).no_less_than(1e-4);
  cluster::Slowdowns slow;
  section.number("factor", slow.factor, at_least(1).no_more_than(1e6), "how many times slower the device is meanwhile");
  section.seconds("mean_length_s", slow.mean_length, length.no_more_than(longest_s), "mean length of a slowdown", required);
  section.seconds("mean_gap_s", slow.mean_gap, length.no_more_than(longest_s), "mean time between two slowdowns", required);
  section.finish();
  node.slowdowns = slow;
}

void read_membership(Reader& section, Node& node, const Spec& spec) {
  if (!section.has("group") && spec.groups.empty()) return;
  std::string group;
  section.text("group", group, "the [[cluster.group]] whose uplink the node shares");
  std::vector<std::string> names;
  for (const auto& known : spec.groups) names.push_back(known.name);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == group) node.group = i;
  if (!group.empty() && !node.group) section.complain("group", "the name of a [[cluster.group]]" + did_you_mean(group, names));
}

/// All keys of a node except its name and count.
Node read_device_and_link(Reader& section, const Spec& spec, const Link& default_link) {
  Node node;
  node.link = default_link;
  read_device(section, node);
  section.number("samples_per_second", node.samples_per_second, above(0).no_less_than(1e-3).no_more_than(1e12).in("samples/s"),
                 "samples that the device finishes per second", required);
  section.integer("gpu_percent", node.gpu_percent, between(1, 100).in("%"),
                  "percentage of the GPU's multiprocessors, enforced by NVIDIA's Multi-Process Service (MPS)");
  if (node.gpu_percent > 0 && node.device != DeviceKind::cuda)
    section.complain("gpu_percent", "no such key for a device that is not a GPU", "device = \"cuda:0\"");
  section.seconds("overhead_s", node.overhead, at_least(0).no_more_than(longest_s), "fixed time of every step, for any batch size");
  section.bytes("memory", node.memory_bytes, at_least(0).no_more_than(1e15), "memory of the device; 0: no limit");
  section.number("jitter", node.jitter, between(0, 3), "standard deviation of the log-normal factor on each step's time");
  if (node.device == DeviceKind::cuda) node.batch_multiple = cluster::gpu_batch_multiple;
  section.integer(
      "batch_multiple", node.batch_multiple, between(1, 1 << 20).in("samples"),
      "batch sizes are multiples of this; above 1: a step is computed as one batch, without micro-batches; default on a GPU: 4");
  section.seconds("new_batch_size_s", node.new_batch_size, at_least(0).no_more_than(longest_s),
                  "simulated and emulated devices: extra time of the first step with a new batch size");
  if (node.batch_multiple > 1 && node.device == DeviceKind::cpu)
    section.complain("batch_multiple", "1 or no value for a CPU, which computes a step in micro-batches", "leave it out");
  if (node.new_batch_size > Duration{0} && node.batch_multiple == 1)
    section.complain("new_batch_size_s", "a batch_multiple above 1", fmt::format("add batch_multiple = {}", cluster::gpu_batch_multiple));
  if (section.has("slowdowns"))
    read_slowdowns(section.section("slowdowns", "Random slowdowns of the node."), node);
  else
    section.section("slowdowns", "Random slowdowns of the node.");
  read_membership(section, node, spec);
  Reader link = section.section("link", "The node's own link; absent keys come from [cluster.link].");
  read_link(link, node.link);
  link.finish();
  return node;
}

/// One [[cluster.node]]: `count` equal nodes, named name-1 to name-N when there are several.
void read_nodes(Reader section, const Link& default_link, Spec& spec, std::set<std::string>& taken) {
  std::string name = "worker";
  section.name("name", name, "name of the node in faults and reports; of several equal nodes: NAME-1, NAME-2, ...");
  std::size_t count = 1;
  section.integer("count", count, between(1, most_nodes), "how many such nodes there are");
  const Node node = read_device_and_link(section, spec, default_link);
  section.finish();
  if (spec.nodes.size() + count > most_nodes) {
    section.complain_found("count", fmt::format("{} nodes in all", spec.nodes.size() + count), fmt::format("at most {}", most_nodes));
    return;
  }
  for (std::size_t i = 1; i <= count; ++i) {
    spec.nodes.push_back(node);
    spec.nodes.back().name = count == 1 ? name : fmt::format("{}-{}", name, i);
    if (!taken.insert(spec.nodes.back().name).second) {
      section.complain_found("name", fmt::format("a second node called \"{}\"", spec.nodes.back().name),
                             "a name of its own for every node");
      return;
    }
  }
}

void read_groups(Reader& cluster, const Link& default_link, Spec& spec) {
  std::set<std::string> taken;
  for (Reader& section : cluster.sections("group", {}, "Nodes behind one shared uplink.")) {
    cluster::Group group{.name = {}, .uplink = default_link};
    section.name("name", group.name, "the name that nodes refer to", required);
    read_link(section, group.uplink, required);
    section.finish();
    if (!group.name.empty() && !taken.insert(group.name).second) section.complain("name", "a name of its own for every group");
    spec.groups.push_back(std::move(group));
  }
}

/// By default each server's NIC carries two worker links at once.
void read_servers(Reader section, const Link& default_link, Spec& spec) {
  section.integer("count", spec.servers, between(1, 1024), "number of server processes that share the parameters; the chief is server 0");
  spec.server_nic = {default_link.latency, 2 * default_link.up_bytes_per_second, 2 * default_link.down_bytes_per_second};
  read_link(section, spec.server_nic);
  std::vector<double> distances;
  section.numbers("distances_s", distances, between(0, longest_s).in("seconds"), spec.servers,
                  "additional one-way latency of each server beside the chief's, which is server 0");
  if (!distances.empty() && distances.front() != 0)
    section.complain("distances_s", "0 first: server 0 is the chief's, and distances are from there");
  for (const double distance : distances) spec.server_distances.push_back(from_seconds(distance));
  section.finish();
}

void read_liveness(Reader& cluster, Spec& spec) {
  const Bounds period = above(0).no_less_than(1e-3);
  cluster.seconds("heartbeat_s", spec.heartbeat, period.no_more_than(longest_s), "silence after which a worker sends a heartbeat");
  cluster.seconds("deadline_s", spec.silence_deadline, period.no_more_than(longest_s), "silence after which a worker counts as dead");
  if (spec.silence_deadline <= spec.heartbeat)
    cluster.complain_found("deadline_s", fmt::format("{}", seconds(spec.silence_deadline)),
                           fmt::format("more than heartbeat_s, {}", seconds(spec.heartbeat)));
  spec.step_limit = std::max(spec.step_limit, spec.silence_deadline);  // the default
  cluster.seconds("step_limit_s", spec.step_limit, period.no_more_than(longest_s),
                  "a worker is expelled as hung when a step takes longer than this and than ten times its slowest recent step; at least "
                  "deadline_s by default");
}

}  // namespace

void read_cluster(Reader section, Job& job) {
  Spec& spec = job.cluster;
  Link default_link{from_seconds(switch_latency_s), gigabit, gigabit};
  Reader link = section.section("link", "The link of every node that has none of its own.");
  read_link(link, default_link);
  link.finish();
  read_servers(section.section("server", "The servers and the links of their hosts; default: twice the bandwidth of [cluster.link]."),
               default_link, spec);
  read_groups(section, default_link, spec);
  std::set<std::string> taken;
  for (const Reader& node : section.sections("node", required, "The workers. At least one.")) read_nodes(node, default_link, spec, taken);
  read_faults(section, spec);
  read_liveness(section, spec);
  section.finish();
}

}  // namespace motley::config
