// Pipelines from their beginning to their end, and when stages or the conductor are lost.
#include "run/small_pipeline_for_tests.h"

namespace motley::run {
namespace {

TEST_F(PipelineProcesses, EndWithTheBitsOfTheHand) {
  start_all();
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
  EXPECT_EQ(story.count(trace::Kind::evaluated), 4U);
  EXPECT_EQ(story.count(trace::Kind::part_began), 3 * 3 * micros * mini_batches);
  EXPECT_EQ(story.count(trace::Kind::committed), 3 * mini_batches);
  EXPECT_TRUE(std::is_sorted(story.events.begin(), story.events.end(), [](const trace::Event& a, const trace::Event& b) {
    return a.kind != trace::Kind::evaluated && b.kind != trace::Kind::evaluated && a.at < b.at;
  })) << "told in order of time";
}

TEST_F(PipelineProcesses, EndWithTheSameBitsOnEmulatedDevicesAndLinks) {
  start_all(true);
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
}

TEST_F(PipelineProcesses, AStageWhosePartComesLateFindsWhatCameBeforeIt) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  ballast = std::uint64_t{1} << 18U;  // there every copy takes its time
#else
  ballast = std::uint64_t{1} << 23U;
#endif
  start_all();
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
  EXPECT_EQ(conductor->model().values.back(), 0.9F);
}

TEST_F(PipelineProcesses, LosingAStageWhilePartsComeIsNoWorseThanLater) {
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
    conductor.reset();
  }
}

TEST_F(PipelineProcesses, WhoRunsAheadComesToTheEndToo) {
  for (const char* name : {"adapipe", "2bw", "pipedream"}) {
    SCOPED_TRACE(name);
    schedule = name;
    address = fresh_socket();
    over.reset();
    start_all();
    ASSERT_TRUE(is_over());
    expect_good_end();
    stages.clear();
    conductor.reset();
  }
}

TEST_F(PipelineProcesses, AStageThatIsLostIsDoneWithoutAndTakenInAgain) {
  start_all();
  ASSERT_TRUE(run_until(io, [this] { return story.version() >= 12 || over; }));
  stages.erase(1);  // as dead as a process
  ASSERT_TRUE(run_until(io, [this] { return story.count(trace::Kind::recut) >= 2 || over; }));
  EXPECT_TRUE(std::any_of(log.begin(), log.end(), [](const std::string& line) { return line.find("a stage was lost: 2 stages") == 0; }));
  start_stage(1);
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros)) << "what was done again was not counted twice";
}

TEST_F(PipelineProcesses, StagesWaitForAConductorThatComesBack) {
  start_all();
  ASSERT_TRUE(run_until(io, [this] { return story.version() >= 12 || over; }));
  conductor.reset();
  start_conductor();  // from the beginning: it has no checkpoint here
  ASSERT_TRUE(is_over());
  expect_good_end();
  EXPECT_EQ(values(), train_by_hand(micros));
}

}  // namespace
}  // namespace motley::run
