// How often processes are restarted, and which events count as progress.
#include "runtime/respawn.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "report/progress_lines.h"

namespace motley::engine {
namespace {

TEST(Respawn, Pauses_grow_until_five_deaths_without_progress) {
  runtime::Respawn respawn;
  for (const double pause_s : {0.5, 1.0, 2.0, 4.0}) EXPECT_EQ(respawn.died(), from_seconds(pause_s));
  EXPECT_EQ(respawn.died(), std::nullopt);
  EXPECT_EQ(respawn.died(), std::nullopt);
}

TEST(Respawn, Progress_resets_the_count_of_deaths) {
  runtime::Respawn respawn;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(respawn.died(), runtime::Respawn::first_pause) << i;
    respawn.progressed();
  }
}

class TellsProgress : public testing::Test {
 protected:
  void joined(std::uint32_t worker, std::uint32_t node) { tell(trace::Joined{.worker = {worker}, .node = node}); }
  void tell(const trace::EventData& data) { progress.on_event({{}, data}); }
  void update(std::uint64_t version, const std::vector<std::uint32_t>& workers) {
    for (const std::uint32_t worker : workers) tell(trace::Counted{.worker = {worker}, .version = {version}});
    tell(trace::Applied{.version = {version}});
  }
  void pipeline_update(std::uint64_t version, const std::vector<std::uint32_t>& stages) {
    for (const std::uint32_t stage : stages) tell(trace::Committed{.stage = {stage}, .version = {version}});
    tell(trace::Applied{.version = {version}});
  }
  std::vector<std::string> reported() {
    progress.tick();
    return std::exchange(lines, {});
  }
  using Lines = std::vector<std::string>;
  Lines lines;
  std::vector<std::string> names{"a", "b"};
  report::ProgressLines progress{[this](const std::string& line) { lines.push_back(line); }, names};
};

TEST_F(TellsProgress, Names_each_contributor_of_a_new_version_once) {
  joined(0, 0);
  joined(1, 1);
  EXPECT_EQ(reported(), Lines{});
  update(1, {0});
  update(2, {0});
  EXPECT_EQ(reported(), (Lines{"progress of a", "progress to 2"}));
  update(3, {0, 1});
  EXPECT_EQ(reported(), (Lines{"progress of b", "progress to 3"}));
  joined(2, 0);  // another incarnation of a
  EXPECT_EQ(reported(), Lines{});
  update(4, {2});
  EXPECT_EQ(reported(), (Lines{"progress of a", "progress to 4"}));
}

TEST_F(TellsProgress, Names_a_stage_only_beyond_the_newest_mini_batch) {
  joined(0, 0);
  joined(1, 1);
  for (const std::uint64_t version : {1U, 2U, 3U}) pipeline_update(version, {0, 1});
  EXPECT_EQ(reported(), (Lines{"progress of a", "progress of b", "progress to 3"}));
  tell(trace::Repartitioned{.stage = {0}, .version = {1}, .node = 1});  // from mini-batch 1 again, on b alone
  pipeline_update(2, {0});
  pipeline_update(3, {0});
  EXPECT_EQ(reported(), Lines{}) << "this was there before";
  pipeline_update(4, {0});
  EXPECT_EQ(reported(), (Lines{"progress of b", "progress to 4"}));
}

}  // namespace
}  // namespace motley::engine
