// The checkers themselves: each is told a made-up trace that breaks its promise and must complain, and one that keeps it and must not.
#include "checkers.h"

#include <gtest/gtest.h>

#include <memory>

namespace motley::checkers {
namespace {

using protocol::EndReason;

// A trace in a few words each; time passes by one second a line unless said otherwise.
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

  /// How often `checker` complains of this story.
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

TEST(TimeOnlyGrows, ComplainsOfAStepBack) {
  EXPECT_EQ(Story().joined(0).joined(1).complaints_of<TimeOnlyGrows>(), 0U);
  EXPECT_EQ(Story().joined(0).wait(-2).joined(1).complaints_of<TimeOnlyGrows>(), 1U);
}

TEST(VersionsOnlyGrow, KnowsAnOrderlyTrace) {
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

TEST(VersionsOnlyGrow, ComplainsOfSkippedAndRepeatedUpdates) {
  EXPECT_EQ(Story().applied(1).applied(3).complaints_of<VersionsOnlyGrow>(), 1U);
  EXPECT_EQ(Story().applied(1).applied(1).complaints_of<VersionsOnlyGrow>(), 1U);
}

TEST(VersionsOnlyGrow, ComplainsOfAContributionFromTheFuture) {
  EXPECT_EQ(Story().applied(1).contributed(0, 0, 2).complaints_of<VersionsOnlyGrow>(), 1U);
}

TEST(VersionsOnlyGrow, ComplainsWhenAWorkersParametersGetOlder) {
  EXPECT_EQ(Story().applied(1).applied(2).contributed(0, 0, 2).contributed(0, 1, 1).complaints_of<VersionsOnlyGrow>(), 1U);
}

TEST(VersionsOnlyGrow, ComplainsOfAReleaseOnAnOldVersion) {
  EXPECT_EQ(Story().applied(1).released(0, 0, 0).complaints_of<VersionsOnlyGrow>(), 1U);
}

TEST(VersionsOnlyGrow, ComplainsOfAStalenessThatIsNotTrue) {
  EXPECT_EQ(Story().contributed(0, 0, 0).applied(1).counted(0, 0, 2, 0).complaints_of<VersionsOnlyGrow>(), 1U);
}

TEST(StalenessBound, ZeroAllowsNoVersionInBetween) {
  const StalenessBound::Allowed none{.staleness = 0, .ahead = {}};
  EXPECT_EQ(
      Story().contributed(0, 0, 0).contributed(1, 0, 0).counted(0, 0, 1).counted(1, 0, 1).applied(1, 2).complaints_of<StalenessBound>(none),
      0U);
  EXPECT_EQ(
      Story().contributed(0, 0, 0).contributed(1, 0, 0).counted(0, 0, 1).applied(1).counted(1, 0, 2, 1).complaints_of<StalenessBound>(none),
      1U);
}

TEST(StalenessBound, ComplainsOfAWorkerThatRunsTooFarAhead) {
  const StalenessBound::Allowed one_ahead{.staleness = {}, .ahead = 1};
  Story story = Story().joined(0).joined(1).ordered(0, 0).ordered(1, 0).contributed(0, 0, 0).ordered(0, 1);
  EXPECT_EQ(story.complaints_of<StalenessBound>(one_ahead), 0U);
  EXPECT_EQ(story.contributed(0, 1, 1).ordered(0, 2).complaints_of<StalenessBound>(one_ahead), 1U);
}

TEST(StalenessBound, WhoRestsOrLeavesHoldsNobodyUp) {
  const StalenessBound::Allowed none_ahead{.staleness = {}, .ahead = 0};
  EXPECT_EQ(Story().joined(0).joined(1).ordered(0, 0).idled(1).contributed(0, 0, 0).ordered(0, 1).complaints_of<StalenessBound>(none_ahead),
            0U);
  EXPECT_EQ(Story().joined(0).joined(1).ordered(0, 0).left(1).contributed(0, 0, 0).ordered(0, 1).complaints_of<StalenessBound>(none_ahead),
            0U);
}

TEST(StalenessBound, ANewcomerStartsLevelWithTheSlowest) {
  const StalenessBound::Allowed none_ahead{.staleness = {}, .ahead = 0};
  EXPECT_EQ(
      Story().joined(0).ordered(0, 0).contributed(0, 0, 0).joined(1).ordered(1, 0).ordered(0, 1).complaints_of<StalenessBound>(none_ahead),
      0U);
}

TEST(RoundsDoNotOverlap, KnowsAnOrderlyRound) {
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

TEST(RoundsDoNotOverlap, ComplainsOfAReleaseBeforeTheBarrierIsComplete) {
  EXPECT_EQ(Story().ordered(0, 0).ordered(1, 0).contributed(0, 0, 0).ordered(0, 1).complaints_of<RoundsDoNotOverlap>(), 1U);
}

TEST(RoundsDoNotOverlap, ComplainsOfAnUpdateWhileSomebodyWorksOnTheOldVersion) {
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

TEST(RoundsDoNotOverlap, WhoLeavesOrIsRefusedHoldsNoRoundOpen) {
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

TEST(EverySampleOnce, KnowsAnOrderlyTraceOverTwoEpochs) {
  const Story story = Story()
                          .leased(0, 0, 0, 2)
                          .leased(0, 0, 0, 1, 1)
                          .contributed(0, 0, 0)
                          .counted(0, 0, 1, 0, 1, 3)
                          .finished(EndReason::every_sample_counted, 3);
  EXPECT_EQ(story.complaints_of<EverySampleOnce>(2U, 3U), 0U);
}

TEST(EverySampleOnce, ComplainsWhenAPositionIsLeasedTwice) {
  EXPECT_EQ(Story().leased(0, 0, 0, 2).leased(1, 0, 1, 3).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, ComplainsWhenACountedPositionIsLeasedAgain) {
  EXPECT_EQ(Story().leased(0, 0, 0, 2).contributed(0, 0, 0).counted(0, 0, 1).leased(1, 0, 0, 2).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, ComplainsWhenALeaseIsCountedTwice) {
  EXPECT_EQ(Story().leased(0, 0, 0, 2).contributed(0, 0, 0).counted(0, 0, 1).counted(0, 0, 2).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, ComplainsOfCountingWhatWasNeverLeasedOrIsNotWhole) {
  EXPECT_EQ(Story().counted(0, 0, 1).complaints_of<EverySampleOnce>(4U, 4U), 1U);
  EXPECT_EQ(Story().leased(0, 0, 0, 2).counted(0, 0, 1).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, ADeadWorkersLeaseIsFreeUnlessItHadContributed) {
  EXPECT_EQ(Story().leased(0, 0, 0, 2).left(0).leased(1, 0, 0, 2).complaints_of<EverySampleOnce>(4U, 4U), 0U);
  EXPECT_EQ(Story().leased(0, 0, 0, 2).contributed(0, 0, 0).left(0).leased(1, 0, 0, 2).complaints_of<EverySampleOnce>(4U, 4U), 1U);
  EXPECT_EQ(Story().leased(0, 0, 0, 2).left(0).contributed(0, 0, 0).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, ADroppedLeaseIsFreeAndMayNotCount) {
  EXPECT_EQ(Story().leased(0, 0, 0, 2).dropped(0, 0).leased(0, 1, 0, 2).complaints_of<EverySampleOnce>(4U, 4U), 0U);
  EXPECT_EQ(Story().leased(0, 0, 0, 2).dropped(0, 0).counted(0, 0, 1).complaints_of<EverySampleOnce>(4U, 4U), 1U);
}

TEST(EverySampleOnce, ComplainsOfAnEndWithSamplesMissing) {
  EXPECT_EQ(Story()
                .leased(0, 0, 0, 2)
                .contributed(0, 0, 0)
                .counted(0, 0, 1)
                .finished(EndReason::every_sample_counted, 2)
                .complaints_of<EverySampleOnce>(4U, 4U),
            1U);
}

TEST(EverySampleOnce, ComplainsOfPositionsOutsideTheTraining) {
  EXPECT_EQ(Story().leased(0, 0, 3, 5).complaints_of<EverySampleOnce>(4U, 8U), 1U);
  EXPECT_EQ(Story().leased(0, 0, 0, 2, 2).complaints_of<EverySampleOnce>(4U, 8U), 1U);
}

constexpr Liveness::Patience patience{.quiet = from_seconds(5), .stage = from_seconds(10), .empty = from_seconds(60)};

TEST(Liveness, KnowsAnOrderlyTrace) {
  const Story story = Story().joined(0).released(0, 0, 0).began(0, 0).contributed(0, 0, 0).counted(0, 0, 1).applied(1).finished(
      EndReason::every_sample_counted, 2);
  EXPECT_EQ(story.complaints_of<Liveness>(patience), 0U);
}

TEST(Liveness, ComplainsWhenEverybodyWaitsForLong) {
  EXPECT_EQ(
      Story().joined(0).joined(1).wait(9).released(0, 0, 0).finished(EndReason::every_sample_counted, 0).complaints_of<Liveness>(patience),
      1U);
}

TEST(Liveness, ComplainsOfAStageThatTakesForEver) {
  EXPECT_EQ(Story()
                .joined(0)
                .released(0, 0, 0)
                .wait(20)
                .began(0, 0)
                .finished(EndReason::every_sample_counted, 0)
                .complaints_of<Liveness>(patience),
            1U);
}

TEST(Liveness, ComplainsOfATraceWithoutAnEnd) { EXPECT_EQ(Story().joined(0).complaints_of<Liveness>(patience), 1U); }

TEST(Liveness, NobodyLeftIsAGoodEndOnlyWhenNobodyWasThereForLong) {
  EXPECT_EQ(Story().joined(0).left(0).wait(100).finished(EndReason::nobody_left, 0).complaints_of<Liveness>(patience), 0U);
  EXPECT_EQ(Story().joined(0).left(0).wait(10).finished(EndReason::nobody_left, 0).complaints_of<Liveness>(patience), 1U);
  EXPECT_EQ(Story().wait(100).finished(EndReason::nobody_left, 0).complaints_of<Liveness>(patience), 0U) << "nobody ever came";
  EXPECT_EQ(Story().wait(10).finished(EndReason::nobody_left, 0).complaints_of<Liveness>(patience), 1U);
  EXPECT_EQ(Story().joined(0).finished(EndReason::nobody_left, 0).complaints_of<Liveness>(patience), 1U);
  EXPECT_EQ(Story().joined(0).finished(EndReason::diverged, 0).complaints_of<Liveness>(patience), 1U);
}

TEST(Liveness, ComplainsOfOrdersAfterTheEnd) {
  EXPECT_EQ(Story().joined(0).finished(EndReason::every_sample_counted, 0).began(0, 0).complaints_of<Liveness>(patience), 0U);
  EXPECT_EQ(Story().joined(0).finished(EndReason::every_sample_counted, 0).ordered(0, 0).complaints_of<Liveness>(patience), 1U);
}

TEST(WeightsSum, GradientsCountBySamplesOverTheBatch) {
  const WeightsSum::Law law{WeightsSum::Of::gradients, 4, false};
  const auto with_weight = [](double weight) {
    return Story().counted(0, 0, 1, 0, weight).counted(1, 0, 1, 0, 0.5).applied(1, 2).finished(EndReason::every_sample_counted, 4);
  };
  EXPECT_EQ(with_weight(0.5).complaints_of<WeightsSum>(law), 0U);
  EXPECT_EQ(with_weight(0.6).complaints_of<WeightsSum>(law), 2U);  // the update and the whole training
  EXPECT_EQ(with_weight(0.4).complaints_of<WeightsSum>(law), 2U);
}

TEST(WeightsSum, ClippingMakesWeightsSmallerButNeverLarger) {
  const WeightsSum::Law law{WeightsSum::Of::gradients, 4, true};
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.2).applied(1).complaints_of<WeightsSum>(law), 0U);
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.6).applied(1).complaints_of<WeightsSum>(law), 1U);
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.0).applied(1).complaints_of<WeightsSum>(law), 1U);
}

TEST(WeightsSum, ModelWeightsOfEachUpdateSumToOne) {
  const WeightsSum::Law law{WeightsSum::Of::models, 4, false};
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.25).counted(1, 0, 1, 0, 0.75).applied(1, 2).complaints_of<WeightsSum>(law), 0U);
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.25).applied(1).complaints_of<WeightsSum>(law), 1U);
}

TEST(WeightsSum, ComplainsOfAnUpdateWithMorePartsThanWereCounted) {
  EXPECT_EQ(Story().counted(0, 0, 1, 0, 0.5).applied(1, 2).complaints_of<WeightsSum>(WeightsSum::Law{WeightsSum::Of::gradients, 4, false}),
            1U);
}

TEST(NothingFromTheDead, WhoHasLeftIsGivenNothing) {
  EXPECT_EQ(Story().joined(0).left(0).ordered(0, 0).complaints_of<NothingFromTheDead>(), 1U);
  EXPECT_EQ(Story().joined(0).left(0).released(0, 0, 0).complaints_of<NothingFromTheDead>(), 1U);
  EXPECT_EQ(Story().ordered(0, 0).complaints_of<NothingFromTheDead>(), 1U);
}

TEST(NothingFromTheDead, OnlyWhatWasContributedBeforeMayStillCount) {
  EXPECT_EQ(Story().joined(0).contributed(0, 0, 0).left(0).counted(0, 0, 1).complaints_of<NothingFromTheDead>(), 0U);
  EXPECT_EQ(Story().joined(0).left(0).counted(0, 0, 1).complaints_of<NothingFromTheDead>(), 1U);
  EXPECT_EQ(Story().joined(0).left(0).contributed(0, 0, 0).complaints_of<NothingFromTheDead>(), 1U);
}

TEST(NothingFromTheDead, AnIdIsUsedOnce) {
  EXPECT_EQ(Story().joined(0).left(0).joined(0).complaints_of<NothingFromTheDead>(), 1U);
  EXPECT_EQ(Story().joined(0).left(0).left(0).complaints_of<NothingFromTheDead>(), 1U);
}

TEST(WithinMemory, ComplainsOfAStepThatDoesNotFit) {
  const std::vector<std::uint32_t> ten{10};
  EXPECT_EQ(Story().joined(0).ordered_samples(0, 10, 1).complaints_of<WithinMemory>(ten), 0U);
  EXPECT_EQ(Story().joined(0).ordered_samples(0, 11, 1).complaints_of<WithinMemory>(ten), 1U);
  EXPECT_EQ(Story().joined(0).ordered_samples(0, 11, 1).complaints_of<WithinMemory>(std::vector<std::uint32_t>{0}), 0U);
  EXPECT_EQ(Story().joined(0).ordered_samples(0, 20, 2).complaints_of<WithinMemory>(ten), 0U) << "each local step is one";
  EXPECT_EQ(Story().joined(0).ordered_samples(0, 21, 2).complaints_of<WithinMemory>(ten), 1U);
}

}  // namespace
}  // namespace motley::checkers
