// Times, node numbers and order of the events that a chief writes.
#include "runtime/chief_trace.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

using trace::Event;
using trace::Kind;

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
  ChiefTrace trace{two_nodes(), from_seconds(100), [this](const Event& event) { events.push_back(event); }};
};

TEST_F(ChiefTraces, Time_begins_with_the_first_order) {
  trace.record(at(3), {.kind = Kind::joined});
  trace.start(at(5));
  trace.start(at(6));
  trace.record(at(7), {.kind = Kind::idled});
  trace.record(at(8), {.at = at(4), .kind = Kind::evaluated});
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].at, at(100));
  EXPECT_EQ(events[1].at, at(102));
  EXPECT_EQ(events[2].at, at(100)) << "an event before the first order";
  EXPECT_EQ(trace.trained(at(9)), at(104));
}

TEST_F(ChiefTraces, Events_after_the_end_follow_the_outcome) {
  trace.record(at(1), {.kind = Kind::applied});
  trace.hold_back();
  trace.record(at(2), {.kind = Kind::evaluated});
  EXPECT_EQ(events.size(), 1U);
  trace.record_outcome({.why = protocol::EndReason::diverged});
  trace.record_outcome({.why = protocol::EndReason::interrupted});
  trace.hold_back();
  trace.record(at(3), {.kind = Kind::left});
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[1].kind, Kind::finished);
  EXPECT_EQ(events[1].why, static_cast<std::uint8_t>(protocol::EndReason::diverged));
  EXPECT_EQ(events[2].kind, Kind::evaluated);
  EXPECT_EQ(events[3].kind, Kind::left);
}

TEST_F(ChiefTraces, Unknown_nodes_get_the_next_numbers) {
  EXPECT_EQ(trace.node_index("elsewhere", std::nullopt), 2U);
  EXPECT_EQ(trace.node_index("b", NodeId{1}), 1U);
  EXPECT_EQ(trace.node_index("a", std::nullopt), 0U);
  EXPECT_EQ(trace.node_index("elsewhere", std::nullopt), 2U);
  EXPECT_EQ(trace.node_names(), (std::vector<std::string>{"a", "b", "elsewhere"}));
}

}  // namespace
}  // namespace motley::runtime
