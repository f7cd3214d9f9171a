// The parts of the chief: admission, alignment tests, the step table, non-finite contributions, evaluations and checkpoints.
#include <gtest/gtest.h>

#include "protocol/admission.h"
#include "protocol/alignment_tests.h"
#include "protocol/chief_state.h"
#include "protocol/non_finite_tracker.h"
#include "protocol/step_table.h"

namespace motley::protocol {
namespace {

constexpr WorkerId ann{0};
constexpr WorkerId bob{1};

wire::Hello hello_of(std::uint32_t node_index, const std::string& node = "node") {
  wire::Hello hello;
  hello.node = node;
  hello.node_index = node_index;
  return hello;
}

PendingStep step_on(Version version) {
  PendingStep step;
  step.version = version;
  step.lease.ranges.push_back({0, 0, 10});
  return step;
}

TEST(Admission, Takes_pending_workers_by_node_index_name_connection) {
  Admission admission({.quorum = 4});
  admission.wait({}, 1, hello_of(wire::no_node_index, "b"));
  admission.wait({}, 2, hello_of(wire::no_node_index, "a"));
  admission.wait({}, 3, hello_of(0));
  EXPECT_FALSE(admission.has_quorum());
  admission.wait({}, 4, hello_of(0));
  EXPECT_TRUE(admission.has_quorum());
  std::vector<std::uint32_t> connections;
  for (const auto& [connection, hello] : admission.take_all()) connections.push_back(connection);
  EXPECT_EQ(connections, (std::vector<std::uint32_t>{3, 4, 2, 1}));
  EXPECT_TRUE(admission.pending().empty());
}

TEST(Admission, Start_deadline_counts_from_the_first_pending_worker) {
  Admission admission({.quorum = 2, .start_deadline = from_seconds(5)});
  EXPECT_FALSE(admission.start_overdue(at_seconds(100)));
  admission.wait(at_seconds(1), 1, hello_of(0));
  admission.disconnected(at_seconds(2), 1);
  admission.wait(at_seconds(3), 2, hello_of(0));
  EXPECT_FALSE(admission.start_overdue(at_seconds(8)));
  EXPECT_TRUE(admission.start_overdue(at_seconds(8.1)));
  admission.driver_paused(from_seconds(1));
  EXPECT_FALSE(admission.start_overdue(at_seconds(9)));
}

TEST(AlignmentTests, Sum_the_results_of_all_servers_once) {
  AlignmentTests tests(2);
  tests.begin(at_seconds(1), ann, Step{3});
  EXPECT_EQ(tests.longest_wait(at_seconds(3)), from_seconds(2));
  EXPECT_EQ(tests.on_result({ServerId{0}, ann, Step{3}, 0.25}), std::nullopt);
  EXPECT_EQ(tests.on_result({ServerId{0}, ann, Step{3}, 9}), std::nullopt) << "the same server again";
  EXPECT_EQ(tests.on_result({ServerId{1}, bob, Step{3}, 9}), std::nullopt) << "no such test";
  EXPECT_EQ(tests.on_result({ServerId{1}, ann, Step{3}, 0.5}), 0.75);
  EXPECT_EQ(tests.longest_wait(at_seconds(9)), Duration{0});
}

TEST(StepTable, First_missing_is_the_oldest_step_not_applied) {
  StepTable steps(1);
  EXPECT_EQ(steps.first_missing(ann, Step{7}), Step{7});
  PendingStep pending = step_on({});
  pending.step = Step{6};
  steps.add(ann, pending);
  EXPECT_EQ(steps.first_missing(ann, Step{7}), Step{6});
  steps.add_complete(ann, Step{5}, {pending.lease, Step{5}});
  EXPECT_EQ(steps.first_missing(ann, Step{7}), Step{5});
  EXPECT_EQ(steps.first_missing(bob, Step{7}), Step{7});
  EXPECT_EQ(steps.leave(ann).size(), 1U);
  EXPECT_EQ(steps.take_complete(ann, Step{5}).parameters, Step{5}) << "a complete step outlives its worker";
}

TEST(NonFiniteTracker, Worker_is_broken_when_others_are_finite_on_newer_parameters) {
  StepTable steps(1);
  NonFiniteTracker tracker(2, 100);
  tracker.join(ann);
  tracker.join(bob);
  tracker.on_finite(bob, Version{4});
  steps.add(bob, step_on(Version{4}));
  EXPECT_EQ(tracker.on_non_finite(ann, Version{5}, steps), NonFiniteTracker::Verdict::undecided);
  EXPECT_EQ(tracker.on_non_finite(ann, Version{5}, steps), NonFiniteTracker::Verdict::undecided) << "Bob's parameters were older";
  tracker.on_finite(bob, Version{5});
  EXPECT_EQ(tracker.on_non_finite(ann, Version{6}, steps), NonFiniteTracker::Verdict::broken_worker);
}

TEST(NonFiniteTracker, Divergence_waits_for_a_worker_that_was_finite) {
  StepTable steps(1);
  NonFiniteTracker tracker(100, 2);
  tracker.join(ann);
  tracker.join(bob);
  steps.add(bob, step_on(Version{1}));
  EXPECT_EQ(tracker.on_non_finite(ann, Version{1}, steps), NonFiniteTracker::Verdict::undecided);
  EXPECT_EQ(tracker.on_non_finite(ann, Version{1}, steps), NonFiniteTracker::Verdict::undecided);
  EXPECT_EQ(tracker.on_non_finite(bob, Version{1}, steps), NonFiniteTracker::Verdict::diverged);
}

TEST(SnapshotSchedule, Evaluations_and_checkpoints_are_due_at_their_multiples) {
  SnapshotSchedule schedule(100, 5);
  EXPECT_FALSE(schedule.evaluation_due(99));
  EXPECT_TRUE(schedule.evaluation_due(100));
  schedule.evaluated(Version{3}, 250);
  EXPECT_FALSE(schedule.evaluation_due(299));
  EXPECT_TRUE(schedule.evaluation_due(300));
  EXPECT_TRUE(schedule.checkpoint_due(Version{10}));
  EXPECT_FALSE(schedule.checkpoint_due(Version{11}));
  EXPECT_FALSE(schedule.checkpoint_within(3, Version{11}));
  EXPECT_TRUE(schedule.checkpoint_within(4, Version{11}));
  EXPECT_FALSE(schedule.is_saved(Version{}));
  EXPECT_FALSE(SnapshotSchedule(100, 0).checkpoint_within(1000, Version{}));
}

}  // namespace
}  // namespace motley::protocol
