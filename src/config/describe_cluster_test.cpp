// The text of the report's cluster section.
#include "config/describe_cluster.h"

#include <gtest/gtest.h>

namespace motley::config {
namespace {

cluster::Spec two_in_a_rack() {
  cluster::Spec spec;
  spec.servers = 2;
  spec.server_nic = {from_seconds(0.0002), 250e6, 125e6};
  spec.groups = {{"rack", {from_seconds(0.001), 100e6, 100e6}}};
  cluster::Node node;
  node.name = "a";
  node.samples_per_second = 500;
  node.link = {from_seconds(0.0002), 125e6, 125e6};
  node.group = 0;
  node.memory_bytes = 8'000'000;
  spec.nodes = {node, node};
  spec.nodes[1].name = "b";
  return spec;
}

TEST(DescribeCluster, Names_memory_and_group_of_a_worker) {
  EXPECT_EQ(describe_workers(two_in_a_rack())[0],
            "a: 500 samples/s, 0 ms overhead, 125 MB/s up, 125 MB/s down, 0.2 ms latency, 8 MB memory, in group rack");
}

TEST(DescribeCluster, Names_servers_and_groups) {
  EXPECT_EQ(describe_network(two_in_a_rack()),
            (std::vector<std::string>{"2 servers, each 250 MB/s up, 125 MB/s down, 0.2 ms latency",
                                      "group rack: 2 workers share 100 MB/s up, 100 MB/s down, 1 ms latency"}));
}

TEST(DescribeCluster, Describes_every_kind_of_fault) {
  using cluster::FaultKind;
  cluster::Spec spec = two_in_a_rack();
  const auto add = [&](double at, FaultKind kind, std::uint32_t node) {
    spec.faults.push_back({at_seconds(at), kind, NodeId{node}, from_seconds(8), 4});
  };
  add(1, FaultKind::slow, 1);
  add(2, FaultKind::pause, 0);
  add(3, FaultKind::partition, 1);
  add(4, FaultKind::kill, 0);
  add(5, FaultKind::join, 0);
  add(6.5, FaultKind::leave, 1);
  EXPECT_EQ(describe_faults(spec),
            (std::vector<std::string>{"at 1 s b runs 4 times slower for 8 s", "at 2 s a pauses for 8 s", "at 3 s b is cut off for 8 s",
                                      "at 4 s a is killed", "at 5 s a joins", "at 6.5 s b leaves"}));
}

}  // namespace
}  // namespace motley::config
