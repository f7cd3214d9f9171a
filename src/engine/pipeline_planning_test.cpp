// Plans from jobs: blocks from a file, links from the topology, given cuts, refusals.
#include "engine/pipeline_planning.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace motley::engine {
namespace {

/// Four blocks of a model that is only timed, on nodes of two racks.
class Pipeline : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::path(testing::TempDir()) / ("motley_pipeline_test_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    write("blocks.toml", blocks);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder / name) << text; }

  [[nodiscard]] Result<PipelinePlan> plan(const std::vector<std::string>& overrides = {}) const {
    write("job.toml", (profiled ? "[pipeline]\nprofile = \"" + (folder / "blocks.toml").string() + "\"\n" : "") + rest);
    const auto job = config::read_job(folder / "job.toml", overrides);
    if (!job) return job.error();
    const auto material = load_material(*job);
    if (!material) return material.error();
    return plan_pipeline(*job, *material);
  }
  [[nodiscard]] std::string refusal(const std::vector<std::string>& overrides) const {
    const auto made = plan(overrides);
    return made ? "" : made.error().message;
  }

  static std::string block(const std::string& name, double third) {
    const std::string s = std::to_string(third);
    return "[[block]]\nname = \"" + name + "\"\nforward_s = " + s + "\ninput_s = " + s + "\nweight_s = " + s +
           "\noutput_bytes = 1000\nkept_bytes = 2000\nparameter_bytes = 4000\n";
  }
  std::filesystem::path folder;
  bool profiled = true;
  std::string blocks = block("a", 1) + block("b", 1) + block("c", 1) + block("d", 1);
  std::string rest =
      "[model]\nkind = \"none\"\nvalues = 4000\n[data]\nsamples = 1000\n[batch]\nglobal = 64\n[cluster.link]\nbandwidth = \"1MB/s\"\n"
      "latency_s = 0.001\n[[cluster.group]]\nname = \"left\"\nbandwidth = \"0.5MB/s\"\nlatency_s = 0.01\n[[cluster.group]]\nname = "
      "\"right\"\n"
      "bandwidth = \"0.5MB/s\"\nlatency_s = 0.01\n[[cluster.node]]\nname = \"x\"\nsamples_per_second = 300\ngroup = \"left\"\n"
      "[[cluster.node]]\nname = \"y\"\nsamples_per_second = 100\ngroup = \"right\"\n";
};

TEST_F(Pipeline, Overhead_of_devices_makes_micro_batches_fewer) {
  const auto made = plan({"cluster.node.x.overhead_s=0.01", "cluster.node.y.overhead_s=0.01"});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->micro_batches, 4U) << "two for each node";
}

TEST_F(Pipeline, Blocks_are_shares_of_a_sample_and_links_follow_the_topology) {
  const auto made = plan();
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->micro_batches, 8U) << "four for each node";
  EXPECT_EQ(made->micro_batch, 8);
  EXPECT_EQ(made->cut, (pipeline::Cut{{0, 3, 0}, {3, 4, 1}}));
  const pipeline::Cost cost = pipeline::cost_of(made->problem, made->cut);
  EXPECT_NEAR(cost.stage_s[0], 8 * 0.75 / 300, 1e-12);
  EXPECT_NEAR(cost.stage_s[1], 8 * 0.25 / 100, 1e-12);
  EXPECT_NEAR(cost.link_s[0], 8 * 1000 / 0.5e6, 1e-9) << "between the racks";
  EXPECT_NEAR(made->problem.links[0][1].latency_s, 0.022, 1e-12);
  ASSERT_EQ(made->rejected.size(), 2U);
  EXPECT_GT(made->rejected[0].slot_s, cost.slot_s);
}

TEST_F(Pipeline, Stages_are_limited_by_the_job) {
  const auto made = plan({"pipeline.stages=1"});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->cut, (pipeline::Cut{{0, 4, 0}}));
}

TEST_F(Pipeline, A_given_cut_is_used_unchanged) {
  const auto made = plan({"pipeline.boundaries=[1]"});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->cut, (pipeline::Cut{{0, 1, 0}, {1, 4, 1}}));
  EXPECT_EQ(made->rejected.back().what, "the planned cut");
  EXPECT_NE(refusal({"pipeline.boundaries=[1, 2]"}).find("expected at most 2 (one for each node)"), std::string::npos);
  EXPECT_NE(refusal({"pipeline.boundaries=[4]"}).find("boundaries below 4"), std::string::npos);
}

TEST_F(Pipeline, A_stage_that_does_not_fit_is_refused_with_its_bytes) {
  const std::string why = refusal({"cluster.node.0.memory=10000", "cluster.node.1.memory=10000"});
  EXPECT_NE(why.find("found 10000 bytes on node \"x\", expected at least 160000 for stage 1 (blocks 0 to 1: a to b)"), std::string::npos)
      << why;
}

TEST_F(Pipeline, A_timing_only_model_needs_a_profile) {
  profiled = false;
  EXPECT_NE(refusal({}).find("pipeline.profile: found none, expected a file of blocks"), std::string::npos);
}

TEST_F(Pipeline, A_bad_profile_is_refused_with_its_line) {
  write("blocks.toml", "[[block]]\nname = \"a\"\nforward_s = -1\n");
  EXPECT_NE(refusal({}).find("block.forward_s: found -1"), std::string::npos);
  write("blocks.toml", block("a", 0));
  EXPECT_NE(refusal({}).find("found blocks that take no time at all"), std::string::npos);
}

}  // namespace
}  // namespace motley::engine
