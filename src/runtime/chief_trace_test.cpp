// Times, node numbers and order of the events that a chief writes.
#include "runtime/chief_trace.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

using trace::Event;

class ChiefTraces : public testing::Test {
 protected:
  static Instant at(double s) { return Instant{from_seconds(s)}; }
  static cluster::Spec two_nodes() {
    cluster::Spec spec;
    spec.nodes.resize(2);
    spec.nodes[0].name = "a";
    spec.nodes[1].name = "b";
    return spec;
  }
  std::vector<Event> events;
  ChiefTrace written{two_nodes(), from_seconds(100), [this](const Event& event) { events.push_back(event); }};
};

TEST_F(ChiefTraces, Time_begins_with_the_first_order) {
  written.record(at(3), trace::Joined{});
  written.start(at(5));
  written.start(at(6));
  written.record(at(7), trace::Idled{});
  written.record(at(4), trace::Evaluated{});
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].at, at(100));
  EXPECT_EQ(events[1].at, at(102));
  EXPECT_EQ(events[2].at, at(100)) << "an event before the first order";
  EXPECT_EQ(written.trained(at(9)), at(104));
}

TEST_F(ChiefTraces, Events_after_the_end_follow_the_outcome) {
  written.record(at(1), trace::Applied{});
  written.hold_back();
  written.record(at(2), trace::Evaluated{});
  EXPECT_EQ(events.size(), 1U);
  written.record_outcome({.why = protocol::EndReason::diverged});
  written.record_outcome({.why = protocol::EndReason::interrupted});
  written.hold_back();
  written.record(at(3), trace::Left{});
  ASSERT_EQ(events.size(), 4U);
  ASSERT_TRUE(events[1].is<trace::Finished>());
  EXPECT_EQ(events[1].as<trace::Finished>()->why, static_cast<std::uint8_t>(protocol::EndReason::diverged));
  EXPECT_TRUE(events[2].is<trace::Evaluated>());
  EXPECT_TRUE(events[3].is<trace::Left>());
}

TEST_F(ChiefTraces, Unknown_nodes_get_the_next_numbers) {
  EXPECT_EQ(written.node_index("elsewhere", std::nullopt), 2U);
  EXPECT_EQ(written.node_index("b", NodeId{1}), 1U);
  EXPECT_EQ(written.node_index("a", std::nullopt), 0U);
  EXPECT_EQ(written.node_index("elsewhere", std::nullopt), 2U);
  EXPECT_EQ(written.node_names(), (std::vector<std::string>{"a", "b", "elsewhere"}));
}

}  // namespace
}  // namespace motley::runtime
