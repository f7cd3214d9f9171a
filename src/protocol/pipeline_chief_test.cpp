// The pipeline chief, driven by hand: when it begins, what it permits and saves, and its reaction to devices that join and leave.
#include "protocol/pipeline_chief.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/rng.h"
#include "pipeline/partition.h"
#include "protocol/trace_events.h"

namespace motley::protocol {
namespace {

/// Four equal devices, eight equal blocks.
PipelineChiefOptions four_devices(const std::string& schedule = "adapipe") {
  PipelineChiefOptions options;
  for (int b = 0; b < 8; ++b) options.problem.blocks.push_back({"b", 0.01, 0.01, 0.01, 1e3, 1e3, 1e3});
  for (int d = 0; d < 4; ++d) options.problem.devices.push_back({"d", 1, 0, 0});
  options.problem.links.assign(4, std::vector<pipeline::DeviceLink>(4, {1e9, 0}));
  options.cut = pipeline::uniform(options.problem);
  options.reschedule = [schedule](const pipeline::Problem& problem, const pipeline::Cut& cut) {
    return pipeline::make_schedule({schedule, 8, 0}, problem, cut);
  };
  options.repartition = [](const pipeline::Problem& problem) { return pipeline::find(problem).cut; };
  options.mini_batches = 100;
  return options;
}

struct Recorded {
  explicit Recorded(PipelineChiefOptions options) : pipeline_chief(std::move(options)) {}
  const PipelineChiefActions& tell(const PipelineChiefEvent& event) {
    actions.clear();
    pipeline_chief.step(now, event, actions);
    for (const auto& action : actions)
      if (const auto* reported = std::get_if<AssignStages>(&action))
        assigned = *reported;
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
    for (const std::uint32_t device : {0U, 1U, 2U, 3U}) tell(DeviceJoined{device});
  }
  void all_commit(std::uint64_t mini, double busy_s = 1) {
    for (std::uint32_t s = 0; s < assigned.cut.size(); ++s) tell(StageCommitted{assigned.generation, s, mini, busy_s, 8});
  }
  /// All stages commit up to `mini`, and send the state that is due.
  void go_to(std::uint64_t mini) {
    for (std::uint64_t n = assigned.from + 1; n <= mini; ++n) {
      all_commit(n);
      if (n % 10 == 0) tell(ModelSnapshotComplete{n});
    }
  }
  PipelineChief pipeline_chief;
  Instant now{};
  PipelineChiefActions actions;
  AssignStages assigned{};
  AllowMore allowed{};
};

TEST(PipelineChief, Begins_when_all_devices_of_its_cut_have_joined) {
  Recorded recorded(four_devices());
  for (const std::uint32_t device : {0U, 1U, 2U}) EXPECT_TRUE(recorded.tell(DeviceJoined{device}).empty()) << device;
  recorded.tell(DeviceJoined{3});
  ASSERT_NE(recorded.find<AssignStages>(), nullptr);
  EXPECT_EQ(recorded.assigned.cut.size(), 4U);
  EXPECT_EQ(recorded.assigned.from, 0U);
  EXPECT_EQ(recorded.assigned.allowed, 3U) << "one ahead, and one more, so that no stage waits for a permit";
}

TEST(PipelineChief, Begins_without_a_missing_device) {
  Recorded recorded(four_devices());
  recorded.tell(DeviceJoined{1});
  recorded.tell(DeviceJoined{2});
  recorded.tell(StartTimeout{});
  ASSERT_NE(recorded.find<AssignStages>(), nullptr);
  EXPECT_EQ(recorded.assigned.cut.size(), 2U);
  for (const pipeline::Stage& stage : recorded.assigned.cut) EXPECT_TRUE(stage.device == 1 || stage.device == 2);
}

TEST(PipelineChief, Allows_more_when_every_stage_has_committed) {
  Recorded recorded(four_devices());
  recorded.all_come();
  for (const std::uint32_t stage : {0U, 1U, 2U}) EXPECT_TRUE(recorded.tell(StageCommitted{1, stage, 1, 1, 8}).empty());
  recorded.tell(StageCommitted{1, 3, 1, 1, 8});
  ASSERT_NE(recorded.find<AllowMore>(), nullptr);
  EXPECT_EQ(recorded.find<AllowMore>()->allowed, 4U);
  EXPECT_EQ(recorded.find<CommittedByAll>()->mini_batches, 1U);
  EXPECT_TRUE(recorded.tell(StageCommitted{1, 3, 1, 1, 8}).empty()) << "once";
  EXPECT_TRUE(recorded.tell(StageCommitted{7, 3, 2, 1, 8}).empty()) << "of another generation";
}

TEST(PipelineChief, Resumes_from_the_saved_model_when_a_device_is_lost) {
  Recorded recorded(four_devices());
  recorded.all_come();
  recorded.go_to(14);
  recorded.tell(DeviceLost{2});
  ASSERT_NE(recorded.find<AssignStages>(), nullptr);
  EXPECT_EQ(recorded.assigned.from, 10U);
  EXPECT_EQ(recorded.assigned.why, AssignReason::loss);
  EXPECT_EQ(recorded.assigned.cut.size(), 3U);
  EXPECT_TRUE(recorded.tell(StageCommitted{1, 0, 15, 1, 8}).empty()) << "messages of the lost generation";
}

/// One stage stays at one task; the others wait for it.
void tell_until(Recorded& recorded, double until_s, std::uint32_t hangs = 2) {
  for (double now = seconds(recorded.now); now <= until_s && recorded.find<StageExpelled>() == nullptr; now += 0.5) {
    recorded.now = at_seconds(now);
    for (std::uint32_t stage = 0; stage < 4; ++stage)
      if (stage != hangs) recorded.tell(StageReported{recorded.assigned.generation, stage, 5, false});
    recorded.tell(StageReported{recorded.assigned.generation, hangs, 5, true});
  }
}

std::vector<std::uint32_t> announced(const AssignStages& assigned) {
  std::vector<std::uint32_t> stages;
  for (const trace::EventData& event : to_trace_events(assigned))
    if (const auto* joined = std::get_if<trace::Joined>(&event)) stages.push_back(joined->worker.value);
  return stages;
}
using Stages = std::vector<std::uint32_t>;

TEST(PipelineChief, Expels_a_hung_stage_and_continues_with_the_others) {
  Recorded recorded(four_devices());
  recorded.all_come();
  recorded.go_to(14);
  recorded.now = at_seconds(100);
  tell_until(recorded, 129.5);
  EXPECT_TRUE(recorded.actions.empty());
  tell_until(recorded, 140);
  const StageExpelled* expelled = recorded.find<StageExpelled>();
  ASSERT_NE(expelled, nullptr);
  EXPECT_EQ(expelled->stage, 2U);
  EXPECT_EQ(expelled->device, 2U);
  EXPECT_EQ(expelled->took, from_seconds(30.5));
  ASSERT_NE(recorded.find<AssignStages>(), nullptr);
  EXPECT_EQ(recorded.assigned.from, 10U);
  EXPECT_EQ(recorded.assigned.cut.size(), 3U);
  for (const pipeline::Stage& stage : recorded.assigned.cut) EXPECT_NE(stage.device, 2U);
  EXPECT_TRUE(recorded.tell(DeviceLost{2}).empty()) << "it was expelled already";
}

TEST(PipelineChief, Its_own_suspension_expels_no_stage) {
  Recorded recorded(four_devices());
  recorded.all_come();
  recorded.go_to(14);
  recorded.now = at_seconds(100);
  tell_until(recorded, 110);
  recorded.now = at_seconds(1000);
  recorded.tell(DriverPaused{from_seconds(889.5)});
  tell_until(recorded, 1010);
  EXPECT_TRUE(recorded.actions.empty());
}

TEST(PipelineChief, Assigns_again_when_no_stage_is_busy_for_long) {
  Recorded recorded(four_devices());
  recorded.all_come();
  recorded.go_to(14);
  const std::uint32_t before = recorded.assigned.generation;
  const auto all_wait_at = [&](double now_s, bool slices) {
    recorded.now = at_seconds(now_s);
    return recorded.tell(StageReported{recorded.assigned.generation, 0, 5, false, slices}).empty();
  };
  EXPECT_TRUE(all_wait_at(1, false));
  EXPECT_TRUE(all_wait_at(250, true)) << "slices of the model are in flight";
  EXPECT_TRUE(all_wait_at(550, false));
  EXPECT_FALSE(all_wait_at(551, false));
  ASSERT_NE(recorded.find<NoProgress>(), nullptr);
  EXPECT_EQ(recorded.assigned.generation, before + 1);
  EXPECT_EQ(recorded.assigned.cut.size(), 4U);
}

TEST(PipelineChief, Adds_a_new_device_when_all_states_are_saved) {
  PipelineChiefOptions options = four_devices("gpipe");
  Recorded recorded(options);
  recorded.all_come();
  recorded.go_to(10);
  recorded.tell(DeviceLost{3});
  recorded.tell(DeviceJoined{3});
  EXPECT_TRUE(recorded.actions.empty()) << "only at a version boundary";
  recorded.go_to(50);
  ASSERT_TRUE(recorded.allowed.submit_state);
  const std::uint64_t boundary = recorded.allowed.allowed;
  for (std::uint64_t n = 51; n <= boundary; ++n) recorded.all_commit(n);
  EXPECT_EQ(recorded.find<AssignStages>(), nullptr) << "the model is not complete yet";
  recorded.tell(ModelSnapshotComplete{boundary});
  ASSERT_NE(recorded.find<AssignStages>(), nullptr);
  EXPECT_EQ(recorded.assigned.why, AssignReason::device_joined);
  EXPECT_EQ(recorded.assigned.from, boundary) << "no work is repeated";
  EXPECT_EQ(recorded.assigned.cut.size(), 4U);
}

TEST(PipelineChief, Does_not_add_a_device_without_benefit) {
  PipelineChiefOptions options = four_devices("gpipe");
  options.problem.devices[3].speed = 0.01;
  options.cut = *pipeline::find(options.problem).cut;
  Recorded recorded(options);
  for (const std::uint32_t device : {0U, 1U, 2U}) recorded.tell(DeviceJoined{device});
  ASSERT_EQ(recorded.assigned.generation, 1U) << "the fourth is not in the cut";
  recorded.tell(DeviceJoined{3});
  recorded.go_to(99);
  EXPECT_EQ(recorded.assigned.generation, 1U);
}

TEST(PipelineChief, Model_is_saved_before_all_commits_are_reported) {
  Recorded recorded(four_devices());
  recorded.all_come();
  recorded.go_to(9);
  for (const std::uint32_t stage : {0U, 1U, 2U}) recorded.tell(StageCommitted{1, stage, 10, 1, 8});
  recorded.tell(ModelSnapshotComplete{10});
  EXPECT_EQ(recorded.pipeline_chief.kept(), 0U);
  recorded.tell(StageCommitted{1, 3, 10, 1, 8});
  EXPECT_EQ(recorded.pipeline_chief.kept(), 10U);
}

TEST(PipelineChief, Ends_when_the_last_model_is_saved) {
  Recorded recorded(four_devices("1f1b"));
  recorded.all_come();
  recorded.go_to(99);
  recorded.all_commit(100);
  EXPECT_FALSE(recorded.pipeline_chief.finished());
  recorded.tell(ModelSnapshotComplete{100});
  EXPECT_TRUE(recorded.pipeline_chief.finished());
  EXPECT_TRUE(recorded.tell(DeviceLost{0}).empty());
}

TEST(PipelineChief, Checkpoint_with_all_mini_batches_is_the_end) {
  PipelineChiefOptions options = four_devices();
  options.first_mini = options.mini_batches;
  Recorded recorded(options);
  recorded.all_come();
  EXPECT_TRUE(recorded.pipeline_chief.finished());
}

TEST(PipelineChief, Cut_with_a_lost_device_is_not_assigned) {
  PipelineChiefOptions options = four_devices();
  options.problem.devices[3].speed = 0.9;  // not in the first cut, and added when another device becomes slow
  options.problem.most_stages = 3;
  options.cut = {{0, 3, 0}, {3, 6, 1}, {6, 8, 2}};
  Recorded recorded(options);
  recorded.all_come();
  for (std::uint64_t n = 1; n <= 50; ++n) {
    recorded.now += from_seconds(8 * 0.9);
    for (std::uint32_t s = 0; s < 3; ++s) recorded.tell(StageCommitted{1, s, n, s == 0 ? 8 * 0.9 : 8 * 0.09, 8});
  }
  ASSERT_TRUE(recorded.allowed.submit_state) << "the first device has become ten times slower";
  recorded.tell(DeviceLost{3});
  for (std::uint64_t n = 51; n <= recorded.allowed.allowed; ++n) recorded.all_commit(n);
  recorded.tell(ModelSnapshotComplete{recorded.allowed.allowed});
  for (const pipeline::Stage& stage : recorded.assigned.cut) EXPECT_NE(stage.device, 3U);
  EXPECT_EQ(recorded.assigned.generation, 2U);
}

TEST(PipelineChief, Any_event_is_safe_in_any_state) {
  Rng rng(5, "pipeline_chief");
  for (int i = 0; i < 300; ++i) {
    Recorded recorded(four_devices());
    for (int k = 0; k < 200; ++k) {
      const auto small = [&] { return static_cast<std::uint32_t>(rng.below(6)); };
      switch (rng.below(7)) {
        case 0: recorded.tell(DeviceJoined{small()}); break;
        case 1: recorded.tell(DeviceLost{small()}); break;
        case 2: recorded.tell(StartTimeout{}); break;
        case 3: recorded.tell(ModelSnapshotComplete{rng.below(120)}); break;
        case 4: recorded.tell(StagesDisconnected{recorded.pipeline_chief.generation() - small() / 5}); break;
        default: recorded.tell(StageCommitted{recorded.pipeline_chief.generation(), small(), rng.below(30), 0.1 * small(), 8}); break;
      }
      if (recorded.find<AssignStages>() != nullptr) {
        EXPECT_LE(recorded.assigned.from, recorded.pipeline_chief.kept());
      }
    }
  }
}

TEST(PipelineChief, Every_newly_assigned_stage_is_announced) {
  PipelineChiefOptions options = four_devices();
  options.cut = {{0, 8, 0}};
  options.repartition = [](const pipeline::Problem& problem) { return std::optional(pipeline::uniform(problem)); };
  Recorded recorded(options);
  recorded.all_come();
  EXPECT_EQ(announced(recorded.assigned), (Stages{0}));
  recorded.tell(DeviceLost{0});
  EXPECT_EQ(recorded.assigned.cut.size(), 3U);
  EXPECT_EQ(announced(recorded.assigned), (Stages{1, 2}));
  recorded.tell(DeviceLost{1});
  EXPECT_EQ(announced(recorded.assigned), Stages{}) << "two stages, both announced before";
  recorded.tell(DeviceJoined{0});
  recorded.tell(DeviceJoined{1});
  recorded.tell(DeviceLost{3});
  EXPECT_EQ(announced(recorded.assigned), Stages{}) << "three again";
}

TEST(PipelineChief, Only_the_expelled_stage_is_announced_again) {
  Recorded recorded(four_devices());
  recorded.all_come();
  EXPECT_EQ(announced(recorded.assigned), (Stages{0, 1, 2, 3}));
  recorded.go_to(14);
  recorded.now = at_seconds(100);
  tell_until(recorded, 140, 1);
  ASSERT_NE(recorded.find<StageExpelled>(), nullptr);
  EXPECT_EQ(recorded.assigned.cut.size(), 3U);
  EXPECT_EQ(announced(recorded.assigned), (Stages{1})) << "the stages after it have not left";
  recorded.tell(DeviceJoined{1});
  recorded.tell(StagesDisconnected{recorded.assigned.generation});
  EXPECT_EQ(recorded.assigned.cut.size(), 4U);
  EXPECT_EQ(announced(recorded.assigned), Stages{});
}

/// 50 mini-batches of 8 s each; stage 0 reports this compute time for each of them.
AllowMore after_stage_0_reports(double busy_s, std::uint64_t micro_batches = 8) {
  Recorded recorded(four_devices());
  recorded.all_come();
  for (std::uint64_t n = 1; n <= 50; ++n) {
    recorded.now += from_seconds(8);
    for (std::uint32_t s = 0; s < 4; ++s)
      recorded.tell(s == 0 ? StageCommitted{1, s, n, busy_s, micro_batches} : StageCommitted{1, s, n, 7.5, 8});
  }
  EXPECT_GE(recorded.allowed.allowed, 50U);
  return recorded.allowed;
}

TEST(PipelineChief, Reported_time_is_limited_by_the_elapsed_time) {
  EXPECT_FALSE(after_stage_0_reports(7.5).submit_state);
  EXPECT_FALSE(after_stage_0_reports(1e9).submit_state) << "at most 8 s are not uneven";
  EXPECT_FALSE(after_stage_0_reports(std::numeric_limits<double>::infinity()).submit_state);
}

TEST(PipelineChief, Invalid_reported_time_moves_no_blocks) {
  EXPECT_FALSE(after_stage_0_reports(std::numeric_limits<double>::quiet_NaN()).submit_state);
  EXPECT_FALSE(after_stage_0_reports(-1e9).submit_state);
}

TEST(PipelineChief, Reported_micro_batches_are_limited_by_the_permits) {
  EXPECT_FALSE(after_stage_0_reports(7.5, 1'000'000'000).submit_state) << "so fast that the others would be uneven";
}

TEST(PipelineChief, First_assignment_begins_training_after_any_wait) {
  PipelineChiefOptions options = four_devices();
  options.repartition = [](const pipeline::Problem& problem) {
    return problem.devices.size() < 2 ? std::nullopt : std::optional(pipeline::uniform(problem));
  };
  Recorded recorded(options);
  recorded.tell(DeviceJoined{2});
  recorded.tell(StartTimeout{});
  ASSERT_NE(recorded.find<NotEnoughDevices>(), nullptr);
  recorded.tell(DeviceJoined{1});
  ASSERT_NE(recorded.find<AssignStages>(), nullptr);
  EXPECT_EQ(recorded.assigned.why, AssignReason::begins);
}

}  // namespace
}  // namespace motley::protocol
