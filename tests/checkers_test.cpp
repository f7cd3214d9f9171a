// Tests of the checkers: each must report a made-up trace that violates its invariant, and accept one that does not.
#include "checkers.h"

#include <gtest/gtest.h>

#include <memory>

namespace motley::checkers {
namespace {

using protocol::EndReason;

// Builds a trace; each event is one second later unless said otherwise.
class Story {
 public:
  Story& joined(std::uint32_t w) { return tell(trace::Joined{.worker = {w}}); }
  Story& left(std::uint32_t w) { return tell(trace::Left{.worker = {w}}); }
  Story& idled(std::uint32_t w) { return tell(trace::Idled{.worker = {w}}); }
  Story& dropped(std::uint32_t w, std::uint64_t step) { return tell(trace::Dropped{.worker = {w}, .step = {step}}); }
  Story& ordered(std::uint32_t w, std::uint64_t step, std::uint64_t version = 0) {
    return tell(trace::Ordered{.worker = {w}, .step = {step}, .version = {version}, .samples = 2});
  }
  Story& ordered_samples(std::uint32_t w, std::uint64_t samples, std::uint64_t local_steps) {
    return tell(trace::Ordered{.worker = {w}, .samples = samples, .local_steps = local_steps});
  }
  Story& released(std::uint32_t w, std::uint64_t step, std::uint64_t version) {
    return tell(trace::Released{.worker = {w}, .step = {step}, .version = {version}});
  }
  Story& leased(std::uint32_t w, std::uint64_t step, std::uint64_t first, std::uint64_t last, std::uint32_t epoch = 0) {
    return tell(trace::Leased{.worker = {w}, .step = {step}, .epoch = epoch, .first = first, .last = last});
  }
  Story& began(std::uint32_t w, std::uint64_t step) { return tell(trace::ComputeBegan{.worker = {w}, .step = {step}}); }
  Story& contributed(std::uint32_t w, std::uint64_t step, std::uint64_t base) {
    return tell(trace::Contributed{.worker = {w}, .step = {step}, .base = {base}, .samples = 2});
  }
  Story& counted(std::uint32_t w, std::uint64_t step, std::uint64_t version, std::uint64_t staleness = 0, double weight = 0.5,
                 std::uint64_t samples = 2) {
    return tell(
        trace::Counted{.worker = {w}, .step = {step}, .version = {version}, .samples = samples, .staleness = staleness, .weight = weight});
  }
  Story& applied(std::uint64_t version, std::uint64_t parts = 1) { return tell(trace::Applied{.version = {version}, .parts = parts}); }
  Story& finished(EndReason why, std::uint64_t counted) {
    return tell(trace::Finished{.why = static_cast<std::uint8_t>(why), .samples = counted});
  }
  Story& wait(double s) { return now_ += from_seconds(s), *this; }

  /// The number of violations that `checker` reports.
  [[nodiscard]] std::size_t complaints(Checker& checker) const {
    for (const Event& event : events_) checker.on_event(event);
    checker.closed();
    for (const Complaint& complaint : checker.complaints()) {
      EXPECT_FALSE(complaint.found.empty());
      EXPECT_FALSE(complaint.expected.empty());
    }
    return checker.complaints().size();
  }
  template <class C, class... Args>
  [[nodiscard]] std::size_t complaints_of(Args&&... args) const {
    C checker(std::forward<Args>(args)...);
    return complaints(checker);
  }

 private:
  Story& tell(const trace::EventData& data) {
    now_ += from_seconds(1);
    events_.push_back({now_, data});
    return *this;
  }
  Instant now_{};
  std::vector<Event> events_;
};

TEST(TimeOnlyGrows, Reports_a_step_back) {
  EXPECT_EQ(Story().joined(0).joined(1).complaints_of<TimeOnlyGrows>(), 0U);
  EXPECT_EQ(Story().joined(0).wait(-2).joined(1).complaints_of<TimeOnlyGrows>(), 1U);
}

TEST(VersionsOnlyGrow, Accepts_a_correct_trace) {
  const Story story = Story()
                          .released(0, 0, 0)
                          .contributed(0, 0, 0)
                          .counted(0, 0, 1)
                          .applied(1)
                          .released(0, 1, 1)
                          .contributed(0, 1, 1)
                          .counted(0, 1, 2)
                          .applied(2);
  EXPECT_EQ(story.complaints_of<VersionsOnlyGrow>(), 0U);
}

TEST(VersionsOnlyGrow, Reports_skipped_and_repeated_updates) {
  EXPECT_EQ(Story().applied(1).applied(3).complaints_of<VersionsOnlyGrow>(), 1U);
  EXPECT_EQ(Story().applied(1).applied(1).complaints_of<VersionsOnlyGrow>(), 1U);
}

TEST(VersionsOnlyGrow, Reports_a_contribution_on_a_future_version) {
  EXPECT_EQ(Story().applied(1).contributed(0, 0, 2).complaints_of<VersionsOnlyGrow>(), 1U);
}

TEST(VersionsOnlyGrow, Reports_parameters_that_get_older) {
  EXPECT_EQ(Story().applied(1).applied(2).contributed(0, 0, 2).contributed(0, 1, 1).complaints_of<VersionsOnlyGrow>(), 1U);
}

TEST(VersionsOnlyGrow, Reports_a_release_on_an_old_version) {
  EXPECT_EQ(Story().applied(1).released(0, 0, 0).complaints_of<VersionsOnlyGrow>(), 1U);
}

TEST(VersionsOnlyGrow, Reports_a_wrong_staleness) {
  EXPECT_EQ(Story().contributed(0, 0, 0).applied(1).counted(0, 0, 2, 0).complaints_of<VersionsOnlyGrow>(), 1U);
}

TEST(StalenessBound, Zero_allows_no_version_in_between) {
  const StalenessBound::Allowed none{.staleness = 0, .ahead = {}};
  EXPECT_EQ(
      Story().contributed(0, 0, 0).contributed(1, 0, 0).counted(0, 0, 1).counted(1, 0, 1).applied(1, 2).complaints_of<StalenessBound>(none),
      0U);
  EXPECT_EQ(
      Story().contributed(0, 0, 0).contributed(1, 0, 0).counted(0, 0, 1).applied(1).counted(1, 0, 2, 1).complaints_of<StalenessBound>(none),
      1U);
}

TEST(StalenessBound, Reports_a_worker_that_is_too_far_ahead) {
  const StalenessBound::Allowed one_ahead{.staleness = {}, .ahead = 1};
  Story story = Story().joined(0).joined(1).ordered(0, 0).ordered(1, 0).contributed(0, 0, 0).ordered(0, 1);
  EXPECT_EQ(story.complaints_of<StalenessBound>(one_ahead), 0U);
  EXPECT_EQ(story.contributed(0, 1, 1).ordered(0, 2).complaints_of<StalenessBound>(one_ahead), 1U);
}

TEST(StalenessBound, Resting_or_former_worker_does_not_limit_others) {
  const StalenessBound::Allowed none_ahead{.staleness = {}, .ahead = 0};
  EXPECT_EQ(Story().joined(0).joined(1).ordered(0, 0).idled(1).contributed(0, 0, 0).ordered(0, 1).complaints_of<StalenessBound>(none_ahead),
            0U);
  EXPECT_EQ(Story().joined(0).joined(1).ordered(0, 0).left(1).contributed(0, 0, 0).ordered(0, 1).complaints_of<StalenessBound>(none_ahead),
            0U);
}

TEST(StalenessBound, New_worker_starts_level_with_the_slowest) {
  const StalenessBound::Allowed none_ahead{.staleness = {}, .ahead = 0};
  EXPECT_EQ(
      Story().joined(0).ordered(0, 0).contributed(0, 0, 0).joined(1).ordered(1, 0).ordered(0, 1).complaints_of<StalenessBound>(none_ahead),
      0U);
}

TEST(RoundsDoNotOverlap, Accepts_a_correct_round) {
  const Story story = Story()
                          .ordered(0, 0)
                          .ordered(1, 0)
                          .contributed(0, 0, 0)
                          .contributed(1, 0, 0)
                          .counted(0, 0, 1)
                          .counted(1, 0, 1)
                          .applied(1, 2)
                          .ordered(0, 1, 1)
                          .ordered(1, 1, 1);
  EXPECT_EQ(story.complaints_of<RoundsDoNotOverlap>(), 0U);
}

TEST(RoundsDoNotOverlap, Reports_a_release_before_the_barrier_is_complete) {
  EXPECT_EQ(Story().ordered(0, 0).ordered(1, 0).contributed(0, 0, 0).ordered(0, 1).complaints_of<RoundsDoNotOverlap>(), 1U);
}

TEST(RoundsDoNotOverlap, Reports_an_update_during_a_step_on_the_old_version) {
  EXPECT_EQ(Story()
                .ordered(0, 0)
                .ordered(1, 0)
                .contributed(0, 0, 0)
                .counted(0, 0, 1)
                .applied(1)
                .ordered(0, 1, 1)
                .complaints_of<RoundsDoNotOverlap>(),
            1U);
}

TEST(RoundsDoNotOverlap, Former_or_refused_worker_does_not_hold_a_round_open) {
  EXPECT_EQ(Story()
                .ordered(0, 0)
                .ordered(1, 0)
                .contributed(0, 0, 0)
                .left(1)
                .counted(0, 0, 1)
                .applied(1)
                .ordered(0, 1, 1)
                .complaints_of<RoundsDoNotOverlap>(),
            0U);
  EXPECT_EQ(Story().ordered(0, 0).dropped(0, 0).applied(1).ordered(0, 1, 1).complaints_of<RoundsDoNotOverlap>(), 0U);
}

TEST(EverySampleOnce, Accepts_a_correct_trace_over_two_epochs) {
  const Story story = Story()
                          .leased(0, 0, 0, 2)
                          .leased(0, 0, 0, 1, 1)
                          .contributed(0, 0, 0)
                          .counted(0, 0, 1, 0, 1, 3)
                          .finished(EndReason::every_sample_counted, 3);
  EXPECT_EQ(story.complaints_of<EverySampleOnce>(2U, 3U), 0U);
}

TEST(EverySampleOnce, Reports_a_position_leased_twice) {
  EXPECT_EQ(Story().leased(0, 0, 0, 2).leased(1, 0, 1, 3).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, Reports_a_counted_position_leased_again) {
  EXPECT_EQ(Story().leased(0, 0, 0, 2).contributed(0, 0, 0).counted(0, 0, 1).leased(1, 0, 0, 2).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, Reports_a_lease_counted_twice) {
  EXPECT_EQ(Story().leased(0, 0, 0, 2).contributed(0, 0, 0).counted(0, 0, 1).counted(0, 0, 2).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, Reports_counting_without_lease_or_contribution) {
  EXPECT_EQ(Story().counted(0, 0, 1).complaints_of<EverySampleOnce>(4U, 4U), 1U);
  EXPECT_EQ(Story().leased(0, 0, 0, 2).counted(0, 0, 1).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, Dead_workers_lease_is_free_unless_contributed) {
  EXPECT_EQ(Story().leased(0, 0, 0, 2).left(0).leased(1, 0, 0, 2).complaints_of<EverySampleOnce>(4U, 4U), 0U);
  EXPECT_EQ(Story().leased(0, 0, 0, 2).contributed(0, 0, 0).left(0).leased(1, 0, 0, 2).complaints_of<EverySampleOnce>(4U, 4U), 1U);
  EXPECT_EQ(Story().leased(0, 0, 0, 2).left(0).contributed(0, 0, 0).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, Dropped_lease_is_free_and_must_not_count) {
  EXPECT_EQ(Story().leased(0, 0, 0, 2).dropped(0, 0).leased(0, 1, 0, 2).complaints_of<EverySampleOnce>(4U, 4U), 0U);
  EXPECT_EQ(Story().leased(0, 0, 0, 2).dropped(0, 0).counted(0, 0, 1).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, Reports_an_end_with_missing_samples) {
  EXPECT_EQ(Story()
                .leased(0, 0, 0, 2)
                .contributed(0, 0, 0)
                .counted(0, 0, 1)
                .finished(EndReason::every_sample_counted, 2)
                .complaints_of<EverySampleOnce>(4U, 4U),
            1U);
}

TEST(EverySampleOnce, Reports_positions_outside_the_training) {
  EXPECT_EQ(Story().leased(0, 0, 3, 5).complaints_of<EverySampleOnce>(4U, 8U), 1U);
  EXPECT_EQ(Story().leased(0, 0, 0, 2, 2).complaints_of<EverySampleOnce>(4U, 8U), 1U);
}

constexpr Liveness::Patience patience{.quiet = from_seconds(5), .stage = from_seconds(10), .empty = from_seconds(60)};

TEST(Liveness, Accepts_a_correct_trace) {
  const Story story = Story().joined(0).released(0, 0, 0).began(0, 0).contributed(0, 0, 0).counted(0, 0, 1).applied(1).finished(
      EndReason::every_sample_counted, 2);
  EXPECT_EQ(story.complaints_of<Liveness>(patience), 0U);
}

TEST(Liveness, Reports_a_long_time_without_activity) {
  EXPECT_EQ(
      Story().joined(0).joined(1).wait(9).released(0, 0, 0).finished(EndReason::every_sample_counted, 0).complaints_of<Liveness>(patience),
      1U);
}

TEST(Liveness, Reports_an_activity_that_takes_too_long) {
  EXPECT_EQ(Story()
                .joined(0)
                .released(0, 0, 0)
                .wait(20)
                .began(0, 0)
                .finished(EndReason::every_sample_counted, 0)
                .complaints_of<Liveness>(patience),
            1U);
}

TEST(Liveness, Reports_a_trace_without_an_end) { EXPECT_EQ(Story().joined(0).complaints_of<Liveness>(patience), 1U); }

TEST(Liveness, Nobody_left_is_valid_only_after_a_long_time) {
  EXPECT_EQ(Story().joined(0).left(0).wait(100).finished(EndReason::nobody_left, 0).complaints_of<Liveness>(patience), 0U);
  EXPECT_EQ(Story().joined(0).left(0).wait(10).finished(EndReason::nobody_left, 0).complaints_of<Liveness>(patience), 1U);
  EXPECT_EQ(Story().wait(100).finished(EndReason::nobody_left, 0).complaints_of<Liveness>(patience), 0U) << "no worker ever joined";
  EXPECT_EQ(Story().wait(10).finished(EndReason::nobody_left, 0).complaints_of<Liveness>(patience), 1U);
  EXPECT_EQ(Story().joined(0).finished(EndReason::nobody_left, 0).complaints_of<Liveness>(patience), 1U);
  EXPECT_EQ(Story().joined(0).finished(EndReason::diverged, 0).complaints_of<Liveness>(patience), 1U);
}

TEST(Liveness, Reports_orders_after_the_end) {
  EXPECT_EQ(Story().joined(0).finished(EndReason::every_sample_counted, 0).began(0, 0).complaints_of<Liveness>(patience), 0U);
  EXPECT_EQ(Story().joined(0).finished(EndReason::every_sample_counted, 0).ordered(0, 0).complaints_of<Liveness>(patience), 1U);
}

TEST(WeightsSum, Gradients_weigh_samples_over_the_batch) {
  const WeightsSum::Law law{WeightsSum::Of::gradients, 4, false};
  const auto with_weight = [](double weight) {
    return Story().counted(0, 0, 1, 0, weight).counted(1, 0, 1, 0, 0.5).applied(1, 2).finished(EndReason::every_sample_counted, 4);
  };
  EXPECT_EQ(with_weight(0.5).complaints_of<WeightsSum>(law), 0U);
  EXPECT_EQ(with_weight(0.6).complaints_of<WeightsSum>(law), 2U);  // the update and the whole training
  EXPECT_EQ(with_weight(0.4).complaints_of<WeightsSum>(law), 2U);
}

TEST(WeightsSum, Clipping_makes_weights_smaller_never_larger) {
  const WeightsSum::Law law{WeightsSum::Of::gradients, 4, true};
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.2).applied(1).complaints_of<WeightsSum>(law), 0U);
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.6).applied(1).complaints_of<WeightsSum>(law), 1U);
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.0).applied(1).complaints_of<WeightsSum>(law), 1U);
}

TEST(WeightsSum, Model_weights_of_each_update_sum_to_one) {
  const WeightsSum::Law law{WeightsSum::Of::models, 4, false};
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.25).counted(1, 0, 1, 0, 0.75).applied(1, 2).complaints_of<WeightsSum>(law), 0U);
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.25).applied(1).complaints_of<WeightsSum>(law), 1U);
}

TEST(WeightsSum, Reports_an_update_with_uncounted_parts) {
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.5).applied(1, 2).complaints_of<WeightsSum>(WeightsSum::Law{WeightsSum::Of::gradients, 4, false}),
            1U);
}

TEST(FormerMembersFenced, Former_member_is_given_nothing) {
  EXPECT_EQ(Story().joined(0).left(0).ordered(0, 0).complaints_of<FormerMembersFenced>(), 1U);
  EXPECT_EQ(Story().joined(0).left(0).released(0, 0, 0).complaints_of<FormerMembersFenced>(), 1U);
  EXPECT_EQ(Story().ordered(0, 0).complaints_of<FormerMembersFenced>(), 1U);
}

TEST(FormerMembersFenced, Only_earlier_contributions_may_still_count) {
  EXPECT_EQ(Story().joined(0).contributed(0, 0, 0).left(0).counted(0, 0, 1).complaints_of<FormerMembersFenced>(), 0U);
  EXPECT_EQ(Story().joined(0).left(0).counted(0, 0, 1).complaints_of<FormerMembersFenced>(), 1U);
  EXPECT_EQ(Story().joined(0).left(0).contributed(0, 0, 0).complaints_of<FormerMembersFenced>(), 1U);
}

TEST(FormerMembersFenced, Id_is_used_once) {
  EXPECT_EQ(Story().joined(0).left(0).joined(0).complaints_of<FormerMembersFenced>(), 1U);
  EXPECT_EQ(Story().joined(0).left(0).left(0).complaints_of<FormerMembersFenced>(), 1U);
}

TEST(WithinMemory, Reports_a_step_that_does_not_fit) {
  const std::vector<std::uint32_t> ten{10};
  EXPECT_EQ(Story().joined(0).ordered_samples(0, 10, 1).complaints_of<WithinMemory>(ten), 0U);
  EXPECT_EQ(Story().joined(0).ordered_samples(0, 11, 1).complaints_of<WithinMemory>(ten), 1U);
  EXPECT_EQ(Story().joined(0).ordered_samples(0, 11, 1).complaints_of<WithinMemory>(std::vector<std::uint32_t>{0}), 0U);
  EXPECT_EQ(Story().joined(0).ordered_samples(0, 20, 2).complaints_of<WithinMemory>(ten), 0U) << "each local step counts by itself";
  EXPECT_EQ(Story().joined(0).ordered_samples(0, 21, 2).complaints_of<WithinMemory>(ten), 1U);
}

}  // namespace
}  // namespace motley::checkers
