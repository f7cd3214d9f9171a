// Whole pipelines over real sockets, in one process: they end with the reference values, whichever stage is lost.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "runtime/small_pipeline_for_tests.h"

namespace motley::runtime {
namespace {

TEST_F(PipelineProcesses, EndWithTheValuesComputedByHand) {
  start_all();
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
  EXPECT_EQ(story.count<trace::Evaluated>(), 4U);
  EXPECT_EQ(story.count<trace::PartBegan>(), 3 * 3 * micros * mini_batches);
  EXPECT_EQ(story.count<trace::Committed>(), 3 * mini_batches);
  EXPECT_TRUE(std::is_sorted(story.events.begin(), story.events.end(), [](const trace::Event& a, const trace::Event& b) {
    return !a.is<trace::Evaluated>() && !b.is<trace::Evaluated>() && a.at < b.at;
  })) << "written in order of time";
}

TEST_F(PipelineProcesses, EndWithTheSameBitsOnEmulatedDevicesAndLinks) {
  checkpoint_every = 5;
  start_all(true);
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
  EXPECT_EQ(recorded_when_saving.size(), mini_batches / checkpoint_every);
  for (const auto& [saved, recorded] : recorded_when_saving) EXPECT_GE(recorded, saved) << "a checkpoint newer than its trace";
}

TEST_F(PipelineProcesses, AStageWithALatePartKeepsEarlierActivations) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  ballast = std::uint64_t{1} << 18U;  // sending each part takes time
#else
  ballast = std::uint64_t{1} << 23U;
#endif
  start_all();
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
  EXPECT_EQ(pipeline_chief->model().values.back(), 0.9F);
}

TEST_F(PipelineProcesses, AStageCanBeLostDuringStateTransfer) {
  ballast = std::uint64_t{1} << 21U;
  for (const std::uint32_t victim : {0U, 1U, 2U}) {
    SCOPED_TRACE(victim);
    address = fresh_socket();
    over.reset();
    log.clear();
    start_all();
    ASSERT_TRUE(run_until(io, [this] { return !log.empty() && log.back().find("training begins") == 0; }));
    stages.erase(victim);
    start_stage(victim);
    ASSERT_TRUE(is_over());
    expect_good_end();
    EXPECT_EQ(values(), train_by_hand(micros));
    stages.clear();
    pipeline_chief.reset();
  }
}

TEST_F(PipelineProcesses, PipelinesThatRunAheadFinish) {
  for (const char* name : {"adapipe", "2bw", "pipedream"}) {
    SCOPED_TRACE(name);
    schedule = name;
    address = fresh_socket();
    over.reset();
    start_all();
    ASSERT_TRUE(is_over());
    expect_good_end();
    stages.clear();
    pipeline_chief.reset();
  }
}

TEST_F(PipelineProcesses, ALostStageIsReplacedAndCanRejoin) {
  start_all();
  ASSERT_TRUE(run_until(io, [this] { return story.version() >= 12 || over; }));
  stages.erase(1);  // as dead as a process
  ASSERT_TRUE(run_until(io, [this] { return story.count<trace::Repartitioned>() >= 2 || over; }));
  EXPECT_TRUE(std::any_of(log.begin(), log.end(), [](const std::string& line) { return line.find("a stage was lost: 2 stages") == 0; }));
  start_stage(1);
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros)) << "mini-batches computed again are counted once";
}

/// On a busy machine other stages may be expelled too and rejoin; the expectations hold nevertheless.
TEST_F(PipelineProcesses, AStageWhoseDeviceHangsIsExpelledByName) {
  for (const Duration lasting : {cluster::forever, from_seconds(1.5)}) {
    SCOPED_TRACE(seconds(lasting));
    step_limit = std::chrono::milliseconds(200);
    faults = {{at_seconds(0.03), cluster::FaultKind::hang, NodeId{1}, lasting, 1}};
    address = fresh_socket();
    over.reset();
    log.clear();
    story.events.clear();
    start_all(true);
    const auto reported = [&](const std::string& begins, const std::string& contains) {
      return std::count_if(log.begin(), log.end(),
                           [&](const std::string& line) { return line.find(begins) == 0 && line.find(contains) != std::string::npos; });
    };
    ASSERT_TRUE(is_over());
    expect_good_end();
    EXPECT_EQ(values(), train_by_hand(micros));
    EXPECT_GE(reported(node_name(1), "is expelled: its process answers but stage 2 of 3"), 1);
    const auto left = story.all<trace::Left>();
    EXPECT_TRUE(std::any_of(left.begin(), left.end(), [](const trace::Left& e) {
      return e.node == 1 && e.why == static_cast<std::uint8_t>(protocol::LeaveReason::step_too_long);
    }));
    if (lasting == cluster::forever) {
      EXPECT_EQ(reported(node_name(1), "is here"), 1) << "it does not join while its device hangs";
    }
    stages.clear();
    pipeline_chief.reset();
  }
}

TEST_F(PipelineProcesses, ASmallerLastMiniBatchIsTrained) {
  for (const std::uint64_t left : {1U, 3U, 7U}) {
    SCOPED_TRACE(left);
    address = fresh_socket();
    over.reset();
    total = (mini_batches - 1) * samples + left;
    start_all();
    ASSERT_TRUE(is_over());
    expect_good_end();
    EXPECT_EQ((*over)->samples, total);
    EXPECT_EQ(values(), train_by_hand(micros, total));
    stages.clear();
    pipeline_chief.reset();
  }
}

TEST_F(PipelineProcesses, StagesOfOtherNodesTakeOverALostOne) {
  for (const std::uint32_t victim : {0U, 1U, 2U}) {
    SCOPED_TRACE(victim);
    address = fresh_socket();
    over.reset();
    story = {};
    log.clear();
    begins_with = {{0, blocks, victim}};  // one stage; then two new ones
    start_pipeline_chief();
    for (const std::uint32_t node : {0U, 1U, 2U})
      if (node != victim) start_stage(node);
    ASSERT_TRUE(run_until(io, [this] { return log.size() == 2; }));  // both have joined
    start_stage(victim);
    ASSERT_TRUE(run_until(io, [this] { return story.version() >= 12 || over; }));
    stages.erase(victim);
    ASSERT_TRUE(is_over());
    expect_good_end();
    EXPECT_EQ(values(), train_by_hand(micros));
    std::set<WorkerId> announced;
    for (const trace::Event& e : story.events) {
      if (const auto* joined = e.as<trace::Joined>()) announced.insert(joined->worker);
      const auto stage = trace::worker_of(e.data);
      const bool works = e.is<trace::PartBegan>() || e.is<trace::Committed>();
      ASSERT_TRUE(!works || announced.contains(*stage)) << stage->value;
    }
    EXPECT_EQ(announced.size(), 2U);
    stages.clear();
    pipeline_chief.reset();
  }
}

/// A value that is not finite, wherever it appears, ends the run as diverged; the stage is named and the kept model stays finite.
TEST_F(PipelineProcesses, InfiniteValuesEndTheRunAndAreNotKept) {
  struct Case {
    const char* name;
    Made made;
    std::uint64_t mini;
    float value;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Case& one : {Case{"output", Made::output, 12, nan}, Case{"gradient back", Made::gradient_of_inputs, 12, -nan},
                          Case{"own gradient", Made::gradient_of_weights, 12, std::numeric_limits<float>::infinity()},
                          Case{"own gradient at the end", Made::gradient_of_weights, mini_batches - 1, nan},
                          Case{"gradient back at the end", Made::gradient_of_inputs, mini_batches - 1, nan}}) {
    SCOPED_TRACE(one.name);
    spoils = [one](Made what, std::uint64_t micro, std::span<float> values) {
      if (what == one.made && micro / micros == one.mini) values.front() = one.value;
    };
    address = fresh_socket();
    over.reset();
    log.clear();
    start_all();
    ASSERT_TRUE(is_over());
    ASSERT_TRUE(over->ok()) << over->error().message;
    EXPECT_EQ((*over)->why, protocol::EndReason::diverged);
    for (const float value : values()) EXPECT_TRUE(std::isfinite(value));
    EXPECT_LT((*over)->updates, mini_batches);
    EXPECT_EQ(std::count_if(log.begin(), log.end(),
                            [](const std::string& line) { return line.find("training diverged: stage ") == 0 && line.find("node-") > 0; }),
              1);
    stages.clear();
    pipeline_chief.reset();
  }
}

TEST_F(PipelineProcesses, StagesWaitForAChiefThatComesBack) {
  start_all();
  ASSERT_TRUE(run_until(io, [this] { return story.version() >= 12 || over; }));
  pipeline_chief.reset();
  start_pipeline_chief();  // from the start: there is no checkpoint
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
}

TEST_F(PipelineProcesses, StagesSurviveImpostorsAtTheChiefsAddress) {
  options.token = "a secret of many letters";
  start_all();
  ASSERT_TRUE(run_until(io, [this] { return story.version() >= 12 || over; }));
  pipeline_chief.reset();
  {
    transport::Impostor impostor(io, address);
    for (const transport::Imposture imposture : transport::impostures) {
      impostor.imposture = imposture;
      impostor.answered = 0;
      ASSERT_TRUE(run_until(io, [&] { return impostor.answered >= 2 * nodes || !ended.empty(); }));
      ASSERT_TRUE(ended.empty()) << "stage " << ended[0] << " gave up on impostor " << static_cast<int>(imposture);
    }
  }
  start_pipeline_chief();
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
}

}  // namespace
}  // namespace motley::runtime
