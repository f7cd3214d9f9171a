// The conductor told by hand: when it begins, what it allows, what it keeps, and what it does when devices come and go.
#include "protocol/conductor.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/rng.h"
#include "plan/partition.h"
#include "protocol/narration.h"

namespace motley::protocol {
namespace {

/// Four equal devices, eight equal blocks.
ConductorOptions four_devices(const std::string& schedule = "adapipe") {
  ConductorOptions options;
  for (int b = 0; b < 8; ++b) options.problem.blocks.push_back({"b", 0.01, 0.01, 0.01, 1e3, 1e3, 1e3});
  for (int d = 0; d < 4; ++d) options.problem.devices.push_back({"d", 1, 0, 0});
  options.problem.links.assign(4, std::vector<plan::Between>(4, {1e9, 0}));
  options.cut = plan::uniform(options.problem);
  options.reschedule = [schedule](const plan::Problem& problem, const plan::Cut& cut) {
    return plan::make_schedule({schedule, 8, 0}, problem, cut);
  };
  options.recut = [](const plan::Problem& problem) { return plan::find(problem).cut; };
  options.mini_batches = 100;
  return options;
}

struct Told {
  explicit Told(ConductorOptions options) : conductor(std::move(options)) {}
  const ConductorActions& tell(const ConductorEvent& event) {
    actions.clear();
    conductor.step(now, event, actions);
    for (const auto& action : actions)
      if (const auto* said = std::get_if<LayOut>(&action))
        laid = *said;
      else if (const auto* more = std::get_if<AllowMore>(&action))
        allowed = *more;
    return actions;
  }
  template <class Action>
  [[nodiscard]] const Action* find() const {
    for (const auto& action : actions)
      if (const auto* found = std::get_if<Action>(&action)) return found;
    return nullptr;
  }
  void all_come() {
    for (const std::uint32_t device : {0U, 1U, 2U, 3U}) tell(DeviceCame{device});
  }
  void all_commit(std::uint64_t mini, double busy_s = 1) {
    for (std::uint32_t s = 0; s < laid.cut.size(); ++s) tell(StageCommitted{laid.generation, s, mini, busy_s, 8});
  }
  /// All commit up to this, and hand in what is due.
  void go_to(std::uint64_t mini) {
    for (std::uint64_t n = laid.from + 1; n <= mini; ++n) {
      all_commit(n);
      if (n % 10 == 0) tell(ModelKept{n});
    }
  }
  Conductor conductor;
  Instant now{};
  ConductorActions actions;
  LayOut laid{};
  AllowMore allowed{};
};

TEST(Conductor, BeginsWhenAllOfItsCutAreThere) {
  Told told(four_devices());
  for (const std::uint32_t device : {0U, 1U, 2U}) EXPECT_TRUE(told.tell(DeviceCame{device}).empty()) << device;
  told.tell(DeviceCame{3});
  ASSERT_NE(told.find<LayOut>(), nullptr);
  EXPECT_EQ(told.laid.cut.size(), 4U);
  EXPECT_EQ(told.laid.from, 0U);
  EXPECT_EQ(told.laid.allowed, 3U) << "one ahead, and one more, so that nobody waits for us";
}

TEST(Conductor, BeginsWithoutWhoeverDoesNotCome) {
  Told told(four_devices());
  told.tell(DeviceCame{1});
  told.tell(DeviceCame{2});
  told.tell(WaitedEnough{});
  ASSERT_NE(told.find<LayOut>(), nullptr);
  EXPECT_EQ(told.laid.cut.size(), 2U);
  for (const plan::Stage& stage : told.laid.cut) EXPECT_TRUE(stage.device == 1 || stage.device == 2);
}

TEST(Conductor, AllowsMoreWhenEveryStageHasCommitted) {
  Told told(four_devices());
  told.all_come();
  for (const std::uint32_t stage : {0U, 1U, 2U}) EXPECT_TRUE(told.tell(StageCommitted{1, stage, 1, 1, 8}).empty());
  told.tell(StageCommitted{1, 3, 1, 1, 8});
  ASSERT_NE(told.find<AllowMore>(), nullptr);
  EXPECT_EQ(told.find<AllowMore>()->allowed, 4U);
  EXPECT_EQ(told.find<CommittedByAll>()->mini_batches, 1U);
  EXPECT_TRUE(told.tell(StageCommitted{1, 3, 1, 1, 8}).empty()) << "once";
  EXPECT_TRUE(told.tell(StageCommitted{7, 3, 2, 1, 8}).empty()) << "of another generation";
}

TEST(Conductor, GoesOnFromWhatWasKeptWhenADeviceIsLost) {
  Told told(four_devices());
  told.all_come();
  told.go_to(14);
  told.tell(DeviceGone{2});
  ASSERT_NE(told.find<LayOut>(), nullptr);
  EXPECT_EQ(told.laid.from, 10U);
  EXPECT_EQ(told.laid.why, Relaid::loss);
  EXPECT_EQ(told.laid.cut.size(), 3U);
  EXPECT_TRUE(told.tell(StageCommitted{1, 0, 15, 1, 8}).empty()) << "what the lost generation still says";
}

/// One stage is at one piece of work; the others wait for it.
void tell_until(Told& told, double until_s, std::uint32_t hangs = 2) {
  for (double now = seconds(told.now); now <= until_s && told.find<StageExpelled>() == nullptr; now += 0.5) {
    told.now = at_seconds(now);
    for (std::uint32_t stage = 0; stage < 4; ++stage)
      if (stage != hangs) told.tell(StageDoing{told.laid.generation, stage, 5, false});
    told.tell(StageDoing{told.laid.generation, hangs, 5, true});
  }
}

std::vector<std::uint32_t> announced(const LayOut& laid) {
  std::vector<std::uint32_t> stages;
  for (const trace::Event& event : narrated(laid))
    if (event.kind == trace::Kind::joined) stages.push_back(event.worker.value);
  return stages;
}
using Stages = std::vector<std::uint32_t>;

TEST(Conductor, ExpelsAStageThatHangsAndGoesOnWithTheOthers) {
  Told told(four_devices());
  told.all_come();
  told.go_to(14);
  told.now = at_seconds(100);
  tell_until(told, 129.5);
  EXPECT_TRUE(told.actions.empty());
  tell_until(told, 140);
  const StageExpelled* expelled = told.find<StageExpelled>();
  ASSERT_NE(expelled, nullptr);
  EXPECT_EQ(expelled->stage, 2U);
  EXPECT_EQ(expelled->device, 2U);
  EXPECT_EQ(expelled->took, from_seconds(30.5));
  ASSERT_NE(told.find<LayOut>(), nullptr);
  EXPECT_EQ(told.laid.from, 10U);
  EXPECT_EQ(told.laid.cut.size(), 3U);
  for (const plan::Stage& stage : told.laid.cut) EXPECT_NE(stage.device, 2U);
  EXPECT_TRUE(told.tell(DeviceGone{2}).empty()) << "that is known";
}

TEST(Conductor, HoldsItsOwnAbsenceAgainstNobody) {
  Told told(four_devices());
  told.all_come();
  told.go_to(14);
  told.now = at_seconds(100);
  tell_until(told, 110);
  told.now = at_seconds(1000);
  told.tell(Unattended{from_seconds(889.5)});
  tell_until(told, 1010);
  EXPECT_TRUE(told.actions.empty());
}

TEST(Conductor, BeginsAnewWhenNobodyIsAtAnythingForLong) {
  Told told(four_devices());
  told.all_come();
  told.go_to(14);
  const std::uint32_t before = told.laid.generation;
  const auto all_wait_at = [&](double now_s, bool slices) {
    told.now = at_seconds(now_s);
    return told.tell(StageDoing{told.laid.generation, 0, 5, false, slices}).empty();
  };
  EXPECT_TRUE(all_wait_at(1, false));
  EXPECT_TRUE(all_wait_at(250, true)) << "slices of the model are on their way";
  EXPECT_TRUE(all_wait_at(550, false));
  EXPECT_FALSE(all_wait_at(551, false));
  ASSERT_NE(told.find<NobodyMoves>(), nullptr);
  EXPECT_EQ(told.laid.generation, before + 1);
  EXPECT_EQ(told.laid.cut.size(), 4U);
}

TEST(Conductor, TakesANewcomerInWhenAllHaveHandedIn) {
  ConductorOptions options = four_devices("gpipe");
  Told told(options);
  told.all_come();
  told.go_to(10);
  told.tell(DeviceGone{3});
  told.tell(DeviceCame{3});
  EXPECT_TRUE(told.actions.empty()) << "not before a version boundary";
  told.go_to(50);
  ASSERT_TRUE(told.allowed.hand_in);
  const std::uint64_t boundary = told.allowed.allowed;
  for (std::uint64_t n = 51; n <= boundary; ++n) told.all_commit(n);
  EXPECT_EQ(told.find<LayOut>(), nullptr) << "its model is not whole yet";
  told.tell(ModelKept{boundary});
  ASSERT_NE(told.find<LayOut>(), nullptr);
  EXPECT_EQ(told.laid.why, Relaid::newcomer);
  EXPECT_EQ(told.laid.from, boundary) << "nothing is done again";
  EXPECT_EQ(told.laid.cut.size(), 4U);
}

TEST(Conductor, LeavesANewcomerAloneThatBuysNothing) {
  ConductorOptions options = four_devices("gpipe");
  options.problem.devices[3].speed = 0.01;
  options.cut = *plan::find(options.problem).cut;
  Told told(options);
  for (const std::uint32_t device : {0U, 1U, 2U}) told.tell(DeviceCame{device});
  ASSERT_EQ(told.laid.generation, 1U) << "the fourth is not in the cut";
  told.tell(DeviceCame{3});
  told.go_to(99);
  EXPECT_EQ(told.laid.generation, 1U);
}

TEST(Conductor, AModelIsKeptThoughSomebodySaysLaterThatItCommittedIt) {
  Told told(four_devices());
  told.all_come();
  told.go_to(9);
  for (const std::uint32_t stage : {0U, 1U, 2U}) told.tell(StageCommitted{1, stage, 10, 1, 8});
  told.tell(ModelKept{10});
  EXPECT_EQ(told.conductor.kept(), 0U);
  told.tell(StageCommitted{1, 3, 10, 1, 8});
  EXPECT_EQ(told.conductor.kept(), 10U);
}

TEST(Conductor, EndsWhenTheLastModelIsKept) {
  Told told(four_devices("1f1b"));
  told.all_come();
  told.go_to(99);
  told.all_commit(100);
  EXPECT_FALSE(told.conductor.finished());
  told.tell(ModelKept{100});
  EXPECT_TRUE(told.conductor.finished());
  EXPECT_TRUE(told.tell(DeviceGone{0}).empty());
}

TEST(Conductor, ACheckpointThatHasThemAllIsTheEnd) {
  ConductorOptions options = four_devices();
  options.first_mini = options.mini_batches;
  Told told(options);
  told.all_come();
  EXPECT_TRUE(told.conductor.finished());
}

TEST(Conductor, ACutForWhoHasLeftMeanwhileIsNotLaidOut) {
  ConductorOptions options = four_devices();
  options.problem.devices[3].speed = 0.9;  // begins outside, and is wanted when another gets slow
  options.problem.most_stages = 3;
  options.cut = {{0, 3, 0}, {3, 6, 1}, {6, 8, 2}};
  Told told(options);
  told.all_come();
  for (std::uint64_t n = 1; n <= 50; ++n) {
    told.now += from_seconds(8 * 0.9);
    for (std::uint32_t s = 0; s < 3; ++s) told.tell(StageCommitted{1, s, n, s == 0 ? 8 * 0.9 : 8 * 0.09, 8});
  }
  ASSERT_TRUE(told.allowed.hand_in) << "the first has become ten times as slow";
  told.tell(DeviceGone{3});
  for (std::uint64_t n = 51; n <= told.allowed.allowed; ++n) told.all_commit(n);
  told.tell(ModelKept{told.allowed.allowed});
  for (const plan::Stage& stage : told.laid.cut) EXPECT_NE(stage.device, 3U);
  EXPECT_EQ(told.laid.generation, 2U);
}

TEST(Conductor, AnyEventMeansSomethingInAnyState) {
  Rng rng(5, "conductor");
  for (int i = 0; i < 300; ++i) {
    Told told(four_devices());
    for (int k = 0; k < 200; ++k) {
      const auto small = [&] { return static_cast<std::uint32_t>(rng.below(6)); };
      switch (rng.below(7)) {
        case 0: told.tell(DeviceCame{small()}); break;
        case 1: told.tell(DeviceGone{small()}); break;
        case 2: told.tell(WaitedEnough{}); break;
        case 3: told.tell(ModelKept{rng.below(120)}); break;
        case 4: told.tell(StagesParted{told.conductor.generation() - small() / 5}); break;
        default: told.tell(StageCommitted{told.conductor.generation(), small(), rng.below(30), 0.1 * small(), 8}); break;
      }
      if (told.find<LayOut>() != nullptr) {
        EXPECT_LE(told.laid.from, told.conductor.kept());
      }
    }
  }
}

TEST(Conductor, EveryStageThatNoLayoutHadBeforeIsAnnounced) {
  ConductorOptions options = four_devices();
  options.cut = {{0, 8, 0}};
  options.recut = [](const plan::Problem& problem) { return std::optional(plan::uniform(problem)); };
  Told told(options);
  told.all_come();
  EXPECT_EQ(announced(told.laid), (Stages{0}));
  told.tell(DeviceGone{0});
  EXPECT_EQ(told.laid.cut.size(), 3U);
  EXPECT_EQ(announced(told.laid), (Stages{1, 2}));
  told.tell(DeviceGone{1});
  EXPECT_EQ(announced(told.laid), Stages{}) << "two stages, which are known";
  told.tell(DeviceCame{0});
  told.tell(DeviceCame{1});
  told.tell(DeviceGone{3});
  EXPECT_EQ(announced(told.laid), Stages{}) << "three again";
}

TEST(Conductor, OnlyTheExpelledStageIsAnnouncedAgain) {
  Told told(four_devices());
  told.all_come();
  EXPECT_EQ(announced(told.laid), (Stages{0, 1, 2, 3}));
  told.go_to(14);
  told.now = at_seconds(100);
  tell_until(told, 140, 1);
  ASSERT_NE(told.find<StageExpelled>(), nullptr);
  EXPECT_EQ(told.laid.cut.size(), 3U);
  EXPECT_EQ(announced(told.laid), (Stages{1})) << "nobody said that those behind it have left";
  told.tell(DeviceCame{1});
  told.tell(StagesParted{told.laid.generation});
  EXPECT_EQ(told.laid.cut.size(), 4U);
  EXPECT_EQ(announced(told.laid), Stages{});
}

/// 50 mini-batches of 8 s each; stage 0 says that each of them took it so long.
AllowMore after_stage_0_says(double busy_s, std::uint64_t micro_batches = 8) {
  Told told(four_devices());
  told.all_come();
  for (std::uint64_t n = 1; n <= 50; ++n) {
    told.now += from_seconds(8);
    for (std::uint32_t s = 0; s < 4; ++s)
      told.tell(s == 0 ? StageCommitted{1, s, n, busy_s, micro_batches} : StageCommitted{1, s, n, 7.5, 8});
  }
  EXPECT_GE(told.allowed.allowed, 50U);
  return told.allowed;
}

TEST(Conductor, AStageIsBelievedNoMoreThanTheTimeThatPassed) {
  EXPECT_FALSE(after_stage_0_says(7.5).hand_in);
  EXPECT_FALSE(after_stage_0_says(1e9).hand_in) << "8 s at most are not uneven";
  EXPECT_FALSE(after_stage_0_says(std::numeric_limits<double>::infinity()).hand_in);
}

TEST(Conductor, AStageWhoseTimeIsNoTimeMovesNoBlocks) {
  EXPECT_FALSE(after_stage_0_says(std::numeric_limits<double>::quiet_NaN()).hand_in);
  EXPECT_FALSE(after_stage_0_says(-1e9).hand_in);
}

TEST(Conductor, AStageHasDoneNoMoreMicroBatchesThanItWasAllowed) {
  EXPECT_FALSE(after_stage_0_says(7.5, 1'000'000'000).hand_in) << "so fast that the others would be uneven";
}

TEST(Conductor, TheFirstLayoutBeginsTrainingHoweverLongItWasWaitedFor) {
  ConductorOptions options = four_devices();
  options.recut = [](const plan::Problem& problem) {
    return problem.devices.size() < 2 ? std::nullopt : std::optional(plan::uniform(problem));
  };
  Told told(options);
  told.tell(DeviceCame{2});
  told.tell(WaitedEnough{});
  ASSERT_NE(told.find<StandsStill>(), nullptr);
  told.tell(DeviceCame{1});
  ASSERT_NE(told.find<LayOut>(), nullptr);
  EXPECT_EQ(told.laid.why, Relaid::begins);
}

}  // namespace
}  // namespace motley::protocol
