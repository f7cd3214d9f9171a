// The simulated network: times of slices alone and together, priorities, cuts and deaths with slices in flight.
#include "sim/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/event_queue.h"

namespace motley::sim {
namespace {

constexpr double latency_s = 0.01;
constexpr double link = 1000;  // bytes per second

struct Arrival {
  double at_s;
  BulkMessage bulk_message;
};

/// A network with its own clock; arrivals are kept in order.
class Wires {
 public:
  explicit Wires(cluster::Spec spec)
      : spec_(std::move(spec)),
        network_(spec_, {[this](Instant when, std::uint32_t egress) {
                           queue_.at(when, {Call::egress_free, egress});
                         },
                         [this](Instant when, std::uint32_t bulk_message) {
                           queue_.at(when, {Call::reached, bulk_message});
                         },
                         [this](Instant when, std::uint32_t bulk_message) {
                           queue_.at(when, {Call::arrived, bulk_message});
                         }}) {}

  void push(std::uint32_t node, std::uint64_t bytes, std::uint32_t slice = 0, std::uint32_t server = 0) {
    network_.send(now_, {{false, node}, {true, server}, slice, bytes, wire::Push{WorkerId{node}, Step{}, SliceId{slice}, 32}});
  }
  void pull(std::uint32_t node, std::uint64_t bytes, std::uint32_t slice = 0, std::uint32_t server = 0) {
    network_.send(now_, {{true, server}, {false, node}, slice, bytes, wire::Pulled{WorkerId{node}, Step{}, Version{}, SliceId{slice}, 32}});
  }
  void run_until(double s) {
    while (!queue_.empty() && queue_.next_time() <= at_seconds(s)) {
      const auto [when, what] = queue_.pop();
      now_ = when;
      if (what.kind == Call::egress_free)
        network_.egress_free(now_, what.index);
      else if (what.kind == Call::reached)
        network_.reached(now_, what.index);
      else
        arrivals_.push_back({seconds(now_), network_.arrived(now_, what.index)});
    }
    now_ = at_seconds(s);
  }
  const std::vector<Arrival>& run() {
    run_until(std::max(1000.0, 2 * seconds(now_)));
    return arrivals_;
  }
  Network& network() { return network_; }
  [[nodiscard]] Instant now() const { return now_; }

 private:
  struct Call {
    enum Kind { egress_free, reached, arrived } kind = egress_free;
    std::uint32_t index = 0;
  };
  cluster::Spec spec_;
  EventQueue<Call> queue_;
  Instant now_{};
  Network network_;
  std::vector<Arrival> arrivals_;
};

/// `nodes` equal links to `servers` servers whose NICs carry `nic` links.
cluster::Spec star(std::uint32_t nodes, double nic = 100, std::uint32_t servers = 1) {
  cluster::Spec spec;
  cluster::Node node;
  node.link = {from_seconds(latency_s), link, link};
  spec.nodes.assign(nodes, node);
  spec.servers = servers;
  spec.server_nic = {from_seconds(0.002), nic * link, nic * link};
  return spec;
}

TEST(Network, ASliceAloneTakesLatencyAndItsBytes) {
  Wires wires(star(1));
  wires.push(0, 500);
  ASSERT_EQ(wires.run().size(), 1U);
  EXPECT_NEAR(wires.run()[0].at_s, latency_s + 0.5, 1e-9);
}

TEST(Network, TheNarrowestPipeDecides) {
  Wires wires(star(1, 0.5));
  wires.push(0, 500);
  EXPECT_NEAR(wires.run()[0].at_s, latency_s + 1.0, 1e-9);
}

TEST(Network, AFarServerIsFarForSlicesAndMessagesBothWays) {
  cluster::Spec spec = star(1, 100, 2);
  spec.server_distances = {from_seconds(0), from_seconds(2)};
  Wires wires(spec);
  wires.push(0, 500, 0, 1);
  ASSERT_EQ(wires.run().size(), 1U);
  EXPECT_NEAR(wires.run()[0].at_s, latency_s + 2 + 0.5, 1e-9);
  EXPECT_EQ(wires.network().latency({true, 1}, {false, 0}), from_seconds(latency_s + 2));
  EXPECT_EQ(wires.network().latency({true, 0}, {false, 0}), from_seconds(latency_s));
  EXPECT_EQ(wires.network().latency({true, 0}, {true, 1}), from_seconds(0.002 + 2));
}

TEST(Network, AFarSenderDoesNotHoldUpANearOne) {
  cluster::Spec spec = star(2, 2);
  spec.nodes[0].link.latency = from_seconds(5);
  Wires wires(spec);
  wires.push(0, 500);
  wires.push(1, 500);
  ASSERT_EQ(wires.run().size(), 2U);
  EXPECT_NEAR(wires.run()[0].at_s, latency_s + 0.5, 1e-9) << "the close server's";
  EXPECT_NEAR(wires.run()[1].at_s, 5 + 0.5, 1e-9);
}

TEST(Network, ASlowWayUpDoesNotNarrowTheWayDown) {
  cluster::Spec spec = star(1);
  spec.nodes[0].link = {from_seconds(0.1), link / 100, link};
  Wires wires(spec);
  for (std::uint32_t slice = 0; slice < 100; ++slice) wires.pull(0, 10, slice);
  ASSERT_EQ(wires.run().size(), 100U);
  EXPECT_NEAR(wires.run().back().at_s, 0.1 + 1.0, 0.02);
}

TEST(Network, BothDirectionsAreFullDuplex) {
  Wires wires(star(1));
  wires.push(0, 500);
  wires.pull(0, 500);
  for (const Arrival& arrival : wires.run()) EXPECT_NEAR(arrival.at_s, latency_s + 0.5, 1e-9);
}

TEST(Network, FourWorkersThroughANicOfTwoLinksTakeTwiceAsLong) {
  Wires wires(star(4, 2));
  for (std::uint32_t n = 0; n < 4; ++n) wires.push(n, 1000);
  ASSERT_EQ(wires.run().size(), 4U);
  EXPECT_NEAR(wires.run().back().at_s, latency_s + 2.0, 1e-6);
}

TEST(Network, PullsThroughANicOfTwoLinksTakeTwiceAsLong) {
  Wires wires(star(4, 2));
  constexpr std::uint64_t a_turn = 64 * 1024;  // that each receiver gets before the next: then 100 slices take 100 * a_turn / 1000 B/s
  for (std::uint32_t slice = 0; slice < 100; ++slice)
    for (std::uint32_t n = 0; n < 4; ++n) wires.pull(n, a_turn, slice);
  wires.run_until(1e6);
  ASSERT_EQ(wires.run().size(), 400U);
  const double alone = 100.0 * a_turn / 1000;
  EXPECT_NEAR(wires.run().back().at_s / alone, 2.0, 0.02);  // to one slice: each link waits for its turn at the NIC
}

TEST(Network, SlicesToOneReceiverShareItsLinkAndKeepItFull) {
  Wires wires(star(1));
  for (std::uint32_t slice = 0; slice < 10; ++slice) wires.pull(0, 100, slice);
  EXPECT_NEAR(wires.run().back().at_s, latency_s + 1.0, 1e-6);
}

TEST(Network, ASliceOfHigherPriorityOvertakesThoseThatWait) {
  Wires wires(star(1));
  for (std::uint32_t slice = 10; slice < 20; ++slice) wires.push(0, 100, slice);
  wires.run_until(0.05);
  wires.push(0, 100, 0);
  const std::vector<Arrival>& arrivals = wires.run();
  const auto place =
      std::find_if(arrivals.begin(), arrivals.end(), [](const Arrival& a) { return a.bulk_message.priority == 0; }) - arrivals.begin();
  EXPECT_LE(place, 2) << "only slices in flight go before it";
}

TEST(Network, WithinOnePriorityTheOrderIsThatOfSending) {
  Wires wires(star(1));
  for (std::uint32_t i = 0; i < 10; ++i) wires.push(0, 10 + i);
  std::uint64_t expected = 10;
  for (const Arrival& arrival : wires.run()) EXPECT_EQ(arrival.bulk_message.bytes, expected++);
}

TEST(Network, NodesOfAGroupShareItsUplink) {
  cluster::Spec spec = star(3);
  spec.groups.push_back({"rack", {from_seconds(0.005), link, link}});
  spec.nodes[0].group = spec.nodes[1].group = 0;
  Wires wires(spec);
  for (std::uint32_t n = 0; n < 3; ++n) wires.push(n, 1000);
  std::map<std::uint32_t, double> at_s;
  for (const Arrival& arrival : wires.run()) at_s[arrival.bulk_message.from.index] = arrival.at_s;
  EXPECT_NEAR(at_s[2], latency_s + 1.0, 1e-6) << "outside the group";
  EXPECT_NEAR(std::max(at_s[0], at_s[1]), latency_s + 0.005 + 2.0, 1e-6);
}

TEST(Network, LatenciesAddUpAlongTheWay) {
  cluster::Spec spec = star(2, 1, 2);
  spec.groups.push_back({"rack", {from_seconds(0.005), link, link}});
  spec.nodes[1].group = 0;
  Wires wires(spec);
  EXPECT_EQ(wires.network().latency({false, 0}, {true, 1}), from_seconds(0.01));
  EXPECT_EQ(wires.network().latency({true, 0}, {false, 1}), from_seconds(0.015));
  EXPECT_EQ(wires.network().latency({true, 0}, {true, 1}), from_seconds(0.002));
  EXPECT_EQ(wires.network().latency({true, 1}, {true, 1}), from_seconds(0));
}

TEST(Network, ACutOffNodeSendsAndReceivesNothingUntilTheCutEnds) {
  Wires wires(star(2));
  wires.network().cut_off(0, at_seconds(5));
  wires.push(0, 100);
  wires.pull(0, 100);
  wires.push(1, 100);
  EXPECT_EQ(wires.network().departure(wires.now(), {false, 0}, {true, 0}), at_seconds(5));
  EXPECT_EQ(wires.network().departure(wires.now(), {false, 1}, {true, 0}), wires.now());
  wires.run_until(4.9);
  wires.push(1, 100);
  ASSERT_EQ(wires.run().size(), 4U);
  EXPECT_NEAR(wires.run()[0].at_s, latency_s + 0.1, 1e-9) << "the other node is not disturbed";
  EXPECT_NEAR(wires.run()[1].at_s, 4.9 + latency_s + 0.1, 1e-9);
  EXPECT_GE(wires.run()[2].at_s, 5.0);
  EXPECT_NEAR(wires.run()[3].at_s, 5.0 + latency_s + 0.1, 1e-9);
}

TEST(Network, OverlappingCutsLastUntilTheLaterEnds) {
  Wires wires(star(1));
  wires.network().cut_off(0, at_seconds(5));
  wires.network().cut_off(0, at_seconds(3));
  wires.push(0, 100);
  EXPECT_NEAR(wires.run()[0].at_s, 5.0 + latency_s + 0.1, 1e-9);
}

TEST(Network, WhatADeadNodeHadNotSentIsGoneAndItsLaneWorksOn) {
  constexpr std::uint64_t large = 3 << 20;  // two of them are a window
  Wires wires(star(2));
  for (std::uint32_t slice = 0; slice < 10; ++slice) {
    wires.push(0, 100, slice);
    wires.pull(0, large, slice);
    wires.pull(1, large, slice);
  }
  wires.run_until(0.15);
  wires.network().drop_node(0);
  wires.run_until(1e6);
  wires.push(0, 100, 77);  // its next life
  wires.pull(0, 100, 77);
  std::map<std::pair<std::uint32_t, bool>, int> count;  // by node and direction
  for (const Arrival& arrival : wires.run())
    ++count[{arrival.bulk_message.from.server ? arrival.bulk_message.to.index : arrival.bulk_message.from.index,
             arrival.bulk_message.from.server}];
  EXPECT_LE((count[{0, false}]), 4);
  EXPECT_LE((count[{0, true}]), 4);
  EXPECT_EQ((count[{1, true}]), 10) << "the other node is not disturbed";
  EXPECT_EQ(wires.run().back().bulk_message.priority, 77U);
}

}  // namespace
}  // namespace motley::sim
