// The order in which the events of a pipeline are written, and the bookkeeping of lost mini-batches.
#include "runtime/pipeline_chief_trace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace motley::runtime {
namespace {

using trace::Event;

class PipelineChiefTraces : public testing::Test {
 protected:
  static Instant at(double s) { return Instant{from_seconds(s)}; }
  static protocol::AssignStages assignment(std::uint64_t from) {
    protocol::AssignStages made;
    made.generation = 1;
    made.cut = {{0, 1, 0}, {1, 2, 1}};
    made.from = from;
    made.allowed = from + 2;
    return made;
  }
  static wire::Committed committed(std::uint32_t stage, std::uint64_t mini_batches, double began_s, double ended_s) {
    const std::uint64_t micro = mini_batches - 1;
    return {1, stage, mini_batches, true, 100 * (stage + 1), {{2, micro, 0, 0, from_seconds(began_s), from_seconds(ended_s)}}};
  }
  std::vector<Event> events;
  PipelineChiefTrace written{from_seconds(100), 0, [this](const Event& event) { events.push_back(event); }};
};

TEST_F(PipelineChiefTraces, Time_begins_with_the_first_layout) {
  EXPECT_FALSE(written.started());
  EXPECT_EQ(written.trained(at(5)), at(100));
  written.assigned(at(5), assignment(0));
  EXPECT_TRUE(written.started());
  EXPECT_EQ(written.trained(at(7)), at(102));
}

TEST_F(PipelineChiefTraces, Events_wait_until_every_stage_has_reported) {
  written.assigned(at(0), assignment(0));
  const auto work = written.committed(at(10), committed(0, 1, 102, 104), 1);
  EXPECT_EQ(work.busy_s, 2);
  EXPECT_EQ(work.micro_batches, 1U);
  written.write_reported();
  EXPECT_EQ(std::count_if(events.begin(), events.end(), [](const Event& e) { return e.is<trace::PartBegan>(); }), 0);
  written.committed(at(11), committed(1, 1, 103, 105), 1);
  written.write_reported();
  EXPECT_EQ(std::count_if(events.begin(), events.end(), [](const Event& e) { return e.is<trace::PartBegan>(); }), 2);
  EXPECT_TRUE(std::is_sorted(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; }));
  EXPECT_EQ(written.peak_stash_bytes(), (std::vector<double>{100, 200}));
}

TEST_F(PipelineChiefTraces, A_checkpoint_has_the_commits_before_it) {
  written.assigned(at(0), assignment(0));
  written.committed_by_all(at(3), 1, 2);
  written.committed(at(10), committed(0, 2, 105, 109), 1);
  written.write_committed();
  ASSERT_TRUE(events.back().is<trace::Applied>());
  EXPECT_EQ(events.back().as<trace::Applied>()->version, Version{1});
  written.write_all();
  EXPECT_TRUE(events.back().is<trace::Committed>());
}

TEST_F(PipelineChiefTraces, Lost_mini_batches_are_counted) {
  EXPECT_EQ(written.assigned(at(0), assignment(0)), 0U);
  written.committed_by_all(at(1), 7, 2);
  EXPECT_EQ(written.assigned(at(2), assignment(5)), 2U);
  EXPECT_EQ(written.assigned(at(3), assignment(5)), 0U);
  EXPECT_EQ(written.computed_again(), 2U);
}

}  // namespace
}  // namespace motley::runtime
