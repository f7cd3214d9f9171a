// The time limits of workers and stages, computed by hand.
#include "protocol/progress.h"

#include <gtest/gtest.h>

#include "protocol/stage_progress.h"

namespace motley::protocol {
namespace {

constexpr WorkerId ann{0};
constexpr WorkerId bob{1};

bool late(const Progress& progress, double now_s, WorkerId worker = ann) {
  for (const Overdue& one : progress.overdue(at_seconds(now_s)))
    if (one.worker == worker) return true;
  return false;
}

/// A worker that took this long for a step of 10 samples.
Progress after_a_step_of(double s, double least_s = 30) {
  Progress progress(from_seconds(least_s));
  progress.ordered(at_seconds(0), ann, 10);
  progress.done(at_seconds(s), ann, 0);
  return progress;
}

TEST(Progress, Step_may_take_the_least_limit) {
  Progress progress = after_a_step_of(1);
  progress.ordered(at_seconds(100), ann, 10);
  EXPECT_FALSE(late(progress, 130));
  EXPECT_TRUE(late(progress, 130.1));
  EXPECT_EQ(progress.overdue(at_seconds(131))[0].took, from_seconds(31));
  EXPECT_EQ(progress.overdue(at_seconds(131))[0].expected, from_seconds(1));
}

TEST(Progress, Step_may_take_ten_times_an_earlier_one) {
  Progress progress = after_a_step_of(5);
  progress.ordered(at_seconds(100), ann, 10);
  EXPECT_FALSE(late(progress, 150));
  EXPECT_TRUE(late(progress, 150.1));
}

TEST(Progress, Larger_step_may_take_longer) {
  for (const std::uint64_t samples : {5, 10, 30}) {
    Progress progress = after_a_step_of(5);
    progress.ordered(at_seconds(100), ann, samples);
    const double limit = samples == 30 ? 150 : 50;
    EXPECT_FALSE(late(progress, 100 + limit)) << samples;
    EXPECT_TRUE(late(progress, 100.1 + limit)) << samples;
  }
}

TEST(Progress, Slow_step_is_remembered_for_a_while) {
  Progress progress = after_a_step_of(5);
  double now = 100;
  for (int quick = 0; quick < 3; ++quick, ++now) {
    progress.ordered(at_seconds(now), ann, 10);
    progress.done(at_seconds(now + 0.1), ann, 0);
  }
  progress.ordered(at_seconds(now), ann, 10);
  EXPECT_NEAR(seconds(progress.overdue(at_seconds(now + 100))[0].expected), 5 * 0.9 * 0.9 * 0.9, 1e-6);
}

TEST(Progress, First_step_may_take_ten_times_the_others) {
  Progress progress(from_seconds(30));
  progress.ordered(at_seconds(0), bob, 10);
  EXPECT_FALSE(late(progress, 300, bob));
  EXPECT_TRUE(late(progress, 300.1, bob)) << "no worker is measured";
  progress.ordered(at_seconds(0), ann, 10);
  progress.done(at_seconds(50), ann, 0);
  EXPECT_FALSE(late(progress, 500, bob));
  EXPECT_TRUE(late(progress, 500.1, bob)) << "ten times the slowest";
}

TEST(Progress, First_step_may_take_twice_as_long_after_an_expulsion) {
  Progress progress(from_seconds(30));
  progress.unknown_was_overdue();
  progress.ordered(at_seconds(0), bob, 10);
  EXPECT_FALSE(late(progress, 600, bob));
  EXPECT_TRUE(late(progress, 600.1, bob));
  for (int i = 0; i < 2'000; ++i) progress.unknown_was_overdue();
  EXPECT_TRUE(late(progress, 1e6, bob)) << "a hung worker is expelled some time";
}

TEST(Progress, Time_of_the_second_order_begins_after_the_first) {
  Progress progress = after_a_step_of(1);
  progress.ordered(at_seconds(100), ann, 10);
  progress.ordered(at_seconds(101), ann, 10);  // it has two orders now
  progress.done(at_seconds(125), ann, 10);
  EXPECT_FALSE(late(progress, 150)) << "49 s since it was ordered";
  EXPECT_EQ(progress.longest_wait(at_seconds(130)), from_seconds(5));
  progress.done(at_seconds(151), ann, 0);
  EXPECT_FALSE(late(progress, 1000)) << "it has no order";
  EXPECT_EQ(progress.longest_wait(at_seconds(1000)), Duration{0});
}

TEST(Progress, Time_of_cancelled_orders_counts) {
  Progress progress = after_a_step_of(1);
  double now = 100;
  for (int again = 0; again < 3; ++again, now += 20) {
    progress.ordered(at_seconds(now), ann, 10);
    progress.taken_back(at_seconds(now + 9), ann);
    EXPECT_FALSE(late(progress, now + 19)) << "it has no order";
  }
  progress.ordered(at_seconds(now), ann, 10);
  EXPECT_FALSE(late(progress, now + 3));
  EXPECT_TRUE(late(progress, now + 3.1)) << "27 s before and these";
  progress.done(at_seconds(now + 4), ann, 0);
  progress.ordered(at_seconds(now + 5), ann, 10);
  EXPECT_FALSE(late(progress, now + 35)) << "it has contributed: the count starts again";
}

TEST(Progress, Suspended_time_does_not_count) {
  Progress progress = after_a_step_of(1);
  progress.ordered(at_seconds(100), ann, 10);
  progress.driver_paused(from_seconds(1000));
  EXPECT_FALSE(late(progress, 1130));
  EXPECT_TRUE(late(progress, 1130.1));
}

TEST(Progress, Former_member_is_not_waited_for) {
  Progress progress = after_a_step_of(1);
  progress.ordered(at_seconds(100), ann, 10);
  progress.left(ann);
  EXPECT_FALSE(late(progress, 1000));
}

// Stages ---------------------------------------------------------------------------------------------------------------------------------

/// Two stages that have both committed; the longest task of each took a second.
StageProgress two_stages() {
  StageProgress progress(from_seconds(30));
  progress.begin(2);
  for (const std::uint32_t stage : {0U, 1U}) {
    EXPECT_FALSE(progress.status(at_seconds(0), stage, 0, true));
    EXPECT_FALSE(progress.status(at_seconds(1), stage, 0, true));
    EXPECT_FALSE(progress.status(at_seconds(1), stage, 1, true));
    progress.committed(at_seconds(1), stage);
    EXPECT_FALSE(progress.status(at_seconds(1), stage, 2, false));
  }
  return progress;
}

TEST(StageProgress, Stage_at_one_task_for_too_long_has_hung) {
  StageProgress progress = two_stages();
  for (double now = 10; now <= 40; ++now) {
    EXPECT_FALSE(progress.status(at_seconds(now), 0, 2, false)) << "it waits for the other stage";
    EXPECT_FALSE(progress.status(at_seconds(now), 1, 2, true));
  }
  const auto found = progress.status(at_seconds(40.5), 1, 2, true);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->took, from_seconds(30.5));
  EXPECT_EQ(found->longest, from_seconds(1));
}

TEST(StageProgress, Stage_may_take_ten_times_its_longest_task) {
  StageProgress progress = two_stages();
  (void)progress.status(at_seconds(10), 1, 2, true);
  (void)progress.status(at_seconds(30), 1, 2, true);
  (void)progress.status(at_seconds(30), 1, 3, true);
  EXPECT_FALSE(progress.status(at_seconds(230), 1, 3, true));
  EXPECT_TRUE(progress.status(at_seconds(230.5), 1, 3, true));
}

TEST(StageProgress, First_task_may_take_ten_times_the_least_limit) {
  StageProgress progress(from_seconds(30));
  progress.begin(1);
  (void)progress.status(at_seconds(5), 0, 0, true);
  EXPECT_FALSE(progress.status(at_seconds(305), 0, 0, true));
  EXPECT_TRUE(progress.status(at_seconds(305.5), 0, 0, true));
}

TEST(StageProgress, First_task_may_take_twice_as_long_after_an_expulsion) {
  StageProgress progress(from_seconds(30));
  double expelled_after = 300;
  for (int generation = 0; generation < 3; ++generation, expelled_after *= 2) {
    progress.begin(2);
    EXPECT_FALSE(progress.status(at_seconds(1'000), 1, 0, true));
    EXPECT_FALSE(progress.status(at_seconds(1'000 + expelled_after), 1, 0, true));
    EXPECT_TRUE(progress.status(at_seconds(1'001 + expelled_after), 1, 0, true));
  }
}

TEST(StageProgress, No_busy_stage_for_long_is_a_lost_message) {
  StageProgress progress = two_stages();
  (void)progress.status(at_seconds(301), 0, 2, false);
  EXPECT_FALSE(progress.no_progress(at_seconds(301)));
  EXPECT_EQ(progress.no_progress(at_seconds(302)), from_seconds(301));
  (void)progress.status(at_seconds(302), 1, 2, true);
  EXPECT_FALSE(progress.no_progress(at_seconds(400))) << "a stage is busy";
  progress.begin(2);
  EXPECT_FALSE(progress.no_progress(at_seconds(1000))) << "no stage has reported yet";
}

TEST(StageProgress, Suspended_time_does_not_count) {
  StageProgress progress = two_stages();
  (void)progress.status(at_seconds(10), 1, 2, true);
  progress.driver_paused(from_seconds(100));
  EXPECT_FALSE(progress.status(at_seconds(140), 1, 2, true));
  EXPECT_TRUE(progress.status(at_seconds(140.5), 1, 2, true));
}

}  // namespace
}  // namespace motley::protocol
