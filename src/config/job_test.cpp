// Valid jobs: every example, the defaults of a short one, overrides, strategies and seeds. Invalid ones are in tests/bad_jobs_test.cpp.
#include "config/job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "cluster/spec.h"
#include "config/job_seeds.h"

namespace motley::config {
namespace {

const std::filesystem::path examples = std::filesystem::path(MOTLEY_SOURCE_DIR) / "examples";

Result<Job> read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  // Tests run in parallel, so each process has its own folder.
  const auto folder = std::filesystem::path(testing::TempDir()) / ("motley_job_test_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "short.toml") << text;
  auto job = read_job(folder / "short.toml", overrides);
  std::filesystem::remove_all(folder);
  return job;
}

Job good(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto job = read(text, overrides);
  EXPECT_TRUE(job.ok()) << (job.ok() ? "" : job.error().message);
  return job.ok() ? *job : Job{};
}

const std::string four_workers = "[[cluster.node]]\ncount = 4\nsamples_per_second = 250\n";

class Example : public testing::TestWithParam<std::string> {};

TEST_P(Example, Is_valid) {
  const auto job = read_job(examples / (GetParam() + ".toml"), {});
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->name, GetParam());
  EXPECT_EQ(job->target_accuracy, 0.86);
}

/// (push + pull) / compute of a BSP step with equal batches: the link factor in the example's name.
double link_factor(const Job& job) {
  constexpr double model_bytes = 109'386 * 4;
  const auto workers = static_cast<double>(job.cluster.nodes.size());
  const cluster::Link& nic = job.cluster.server_nic;
  const double talk = workers * model_bytes * (1 / nic.up_bytes_per_second + 1 / nic.down_bytes_per_second);
  double compute = 0;
  for (const auto& node : job.cluster.nodes)
    compute = std::max(compute, seconds(node.overhead) + job.global_batch / workers / node.samples_per_second);
  return talk / compute;
}

TEST_P(Example, Has_the_link_factor_of_its_name) {
  const auto job = read_job(examples / (GetParam() + ".toml"), {});
  ASSERT_TRUE(job.ok()) << job.error().message;
  const double expected = GetParam().ends_with("heavy2") ? 2 : GetParam().ends_with("heavy") ? 1 : 0.1;
  EXPECT_NEAR(link_factor(*job) / expected, 1, 1e-3);
  for (const auto& node : job->cluster.nodes)
    EXPECT_NEAR(job->cluster.server_nic.up_bytes_per_second, 2 * node.link.up_bytes_per_second, 1);
}

INSTANTIATE_TEST_SUITE_P(All, Example,
                         testing::Values("4421-cheap", "4421-heavy", "4421-heavy2", "4421t-cheap", "4421t-heavy", "2211-cheap",
                                         "2211-heavy", "8w-cheap", "8w-heavy", "8w-heavy2", "8wt-cheap", "mixed"),
                         [](const auto& example) {
                           std::string name = example.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Examples, All_are_tested) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(examples)) {
    if (entry.path().extension() != ".toml") continue;  // skips the folder of profiles
    ++files;
    EXPECT_TRUE(read_job(entry.path(), {}).ok()) << entry.path();
  }
  EXPECT_EQ(files, 24U);
}

TEST(Job, Short_file_is_enough) {
  const Job job = good(four_workers);
  EXPECT_EQ(job.name, "short");
  EXPECT_EQ(job.strategy.kind, "bsp");
  EXPECT_EQ(job.global_batch, 128U);
  EXPECT_FALSE(job.target_accuracy);
  ASSERT_EQ(job.cluster.nodes.size(), 4U);
  EXPECT_EQ(job.cluster.nodes[3].name, "worker-4");
  EXPECT_EQ(job.cluster.nodes[0].link.up_bytes_per_second, 125e6);
  EXPECT_EQ(job.cluster.nodes[0].link.latency, from_seconds(0.0002));
  EXPECT_EQ(job.cluster.server_nic.down_bytes_per_second, 250e6);
}

TEST(Job, Nodes_link_takes_absent_keys_from_the_clusters) {
  const Job job = good(
      "[cluster.link]\nup = \"10MB/s\"\ndown = \"20MB/s\"\n[[cluster.node]]\nsamples_per_second = 1\nlink = { up = 1e6, latency_s = 0.5 "
      "}\n");
  const cluster::Link& link = job.cluster.nodes.at(0).link;
  EXPECT_EQ(link.up_bytes_per_second, 1e6);
  EXPECT_EQ(link.down_bytes_per_second, 20e6);
  EXPECT_EQ(link.latency, from_seconds(0.5));
  EXPECT_EQ(job.cluster.server_nic.up_bytes_per_second, 20e6);
}

TEST(Job, Faults_are_sorted_by_time_and_refer_to_nodes) {
  const Job job = good(four_workers +
                       "[[cluster.fault]]\nat = 9\nkind = \"join\"\nnode = \"worker-3\"\n"
                       "[[cluster.fault]]\nat = 2\nkind = \"slow\"\nnode = \"worker-2\"\nfor = 5\nfactor = 4\n");
  ASSERT_EQ(job.cluster.faults.size(), 2U);
  EXPECT_EQ(job.cluster.faults[0].kind, cluster::FaultKind::slow);
  EXPECT_EQ(job.cluster.faults[0].lasting, from_seconds(5));
  EXPECT_EQ(job.cluster.faults[1].node, NodeId{2});
  EXPECT_TRUE(cluster::present_at_start(job.cluster, NodeId{1}));
  EXPECT_FALSE(cluster::present_at_start(job.cluster, NodeId{2}));
}

TEST(Job, Killed_node_may_join_again) {
  const Job job = good(four_workers +
                       "[[cluster.fault]]\nat = 1\nkind = \"kill\"\nnode = \"worker-1\"\n"
                       "[[cluster.fault]]\nat = 2\nkind = \"join\"\nnode = \"worker-1\"\n");
  EXPECT_TRUE(cluster::present_at_start(job.cluster, NodeId{0}));
}

TEST(Job, Fixed_batches_count_workers_present_at_the_start) {
  const std::string late = "[[cluster.fault]]\nat = 1\nkind = \"join\"\nnode = \"worker-4\"\n";
  const Job job = good("[batch]\nglobal = 100\nper_worker = [50, 30, 20]\n" + four_workers + late);
  EXPECT_EQ(job.strategy.batches, (std::vector<std::uint32_t>{50, 30, 20}));
}

TEST(Job, Without_a_model_is_timing_only) {
  const Job job = good("[model]\nkind = \"none\"\nvalues = 1000\n[data]\nsamples = 60000\n" + four_workers);
  EXPECT_TRUE(job.timing_only);
  EXPECT_EQ(job.timing_values, 1000U);
  EXPECT_EQ(job.timing_samples, 60'000U);
}

TEST(Job, Reads_devices_groups_and_slowdowns) {
  const Job job = good(
      "[wire]\nslice = \"256KiB\"\n[[cluster.group]]\nname = \"rack\"\nbandwidth = \"1Gbit/s\"\n[[cluster.node]]\nname = \"gpu\"\ndevice = "
      "\"cuda:3\"\nmemory = "
      "\"8GiB\"\ngroup = \"rack\"\nsamples_per_second = 9\nslowdowns = { mean_length_s = 1, mean_gap_s = 6 }\n");
  const cluster::Node& node = job.cluster.nodes.at(0);
  EXPECT_EQ(node.name, "gpu");
  EXPECT_EQ(node.device, cluster::DeviceKind::cuda);
  EXPECT_EQ(node.device_index, 3);
  EXPECT_EQ(node.memory_bytes, 8ULL << 30U);
  EXPECT_EQ(node.group, 0U);
  EXPECT_EQ(node.slowdowns->mean_gap, from_seconds(6));
  EXPECT_EQ(job.slice_bytes, 262'144U);
  EXPECT_FALSE(job.streams || job.layout_options.whole_tensors || job.layout_options.backward_order);
}

TEST(Job, Default_slice_depends_on_the_fastest_link) {
  const auto slice = [](const std::string& bandwidth, const std::string& node = "") {
    return good("[cluster.link]\nbandwidth = \"" + bandwidth + "\"\n[[cluster.node]]\nname = \"n\"\nsamples_per_second = 1\n" + node)
        .slice_bytes;
  };
  EXPECT_EQ(slice("1Gbit/s"), 65'536U);
  EXPECT_EQ(slice("25Gbit/s"), 156'248U) << "50 us, in whole values";
  EXPECT_EQ(slice("20GB/s"), 1'000'000U);
  EXPECT_EQ(slice("50GB/s"), 1U << 20U);
  EXPECT_EQ(slice("1Gbit/s", "device = \"cuda:0\"\n"), 512U << 10U);
}

TEST(Job, Wire_options_of_other_systems_are_read) {
  const Job job = good(four_workers, {"wire.unit=tensor", "wire.order=fifo", "wire.stream=true"});
  EXPECT_TRUE(job.streams && job.layout_options.whole_tensors && job.layout_options.backward_order);
}

TEST(Job, Overrides_replace_values_of_the_file) {
  const Job job =
      good(four_workers, {"job.seed=7", "cluster.node.0.jitter=0.1", "strategy.kind=ssp", "strategy.bound=2", "optimizer.lr=0.5"});
  EXPECT_EQ(job.seed, 7U);
  EXPECT_EQ(job.cluster.nodes.at(2).jitter, 0.1);
  EXPECT_EQ(job.strategy.kind, "ssp");
  EXPECT_EQ(job.strategy.knobs.bound, 2U);
  EXPECT_EQ(job.schedule.lr, 0.5);
}

TEST(Strategy, List_entry_sets_its_knobs) {
  const auto strategy = read_strategy(Job{}, "ssp:bound=2:lookahead=0:lr=0.01");
  ASSERT_TRUE(strategy.ok()) << strategy.error().message;
  EXPECT_EQ(strategy->kind, "ssp");
  EXPECT_EQ(strategy->knobs.bound, 2U);
  EXPECT_EQ(strategy->knobs.lookahead, 0U);
  EXPECT_EQ(strategy->knobs.lr, 0.01);
}

TEST(Strategy, Jobs_knobs_apply_to_the_same_kind_only) {
  Job job;
  job.strategy.kind = "local-sgd";
  job.strategy.knobs.steps = 8;
  job.strategy.batches = {64, 64};
  EXPECT_EQ(read_strategy(job, "local-sgd:lr=0.1")->knobs.steps, 8U);
  EXPECT_EQ(read_strategy(job, "local-sgd:steps=16")->knobs.steps, 16U);
  EXPECT_FALSE(read_strategy(job, "bsp")->knobs.steps);
  EXPECT_EQ(read_strategy(job, "bsp")->batches, job.strategy.batches);
}

TEST(Strategy, Errors_name_entry_knob_and_remedy) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"local-sdg", "strategy \"local-sdg\": kind: found \"local-sdg\", expected one of \"bsp\""},
      {"local-sdg", "did you mean local-sgd?"},
      {"local-sgd:step=4", "step: found an unknown key, expected one of"},
      {"local-sgd:step=4", "did you mean steps?"},
      {"local-sgd:steps=0", "steps: found 0, expected an integer of at least 1"},
      {"local-sgd:steps", "found \"steps\", expected knob=value"},
      {"ssp:bound=x", "bound: found a string \"x\", expected an integer"},
      {"ssp:bound=1:bound=2", "bound: found twice"},
      {"dssp:bound=5:bound_max=4", "bound_max: found 4, expected at least 5"},
      {"dssp:bound=20", "strategy \"dssp:bound=20\": bound: found 20, expected at most 15, which is the preset of bound_max"},
      {"bsp:steps=4", "strategy \"bsp:steps=4\": steps: found a knob that bsp does not take, expected one of bits"},
      {"bsp:momentum=1", "momentum: found 1, expected a number from 0 to below 1"},
      {"bsp:lookahead=65", "lookahead: found 65, expected an integer from 0 to 64"},
      {"", "found \"\", expected one of"},
  };
  for (const auto& [text, needle] : cases) {
    const auto strategy = read_strategy(Job{}, text);
    ASSERT_FALSE(strategy.ok()) << text;
    EXPECT_NE(strategy.error().message.find(needle), std::string::npos) << strategy.error().message;
  }
}

TEST(Seeds, Count_starts_at_zero_and_range_includes_both_ends) {
  EXPECT_EQ(*read_seeds("5"), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(*read_seeds("10..12"), (std::vector<std::uint64_t>{10, 11, 12}));
  EXPECT_EQ(*read_seeds("7..7"), (std::vector<std::uint64_t>{7}));
  EXPECT_EQ(read_seeds("18446744073709551614..18446744073709551615")->size(), 2U);
}

TEST(Seeds, Other_text_is_refused) {
  for (const char* text : {"", "0", "-1", "x", "3..1", "1..", "..2", "1...2", "99999999", "0..18446744073709551615", "1,2"}) {
    const auto seeds = read_seeds(text);
    ASSERT_FALSE(seeds.ok()) << text;
    EXPECT_NE(seeds.error().message.find("--seeds: found \"" + std::string(text) + "\", expected"), std::string::npos);
  }
}

}  // namespace
}  // namespace motley::config
