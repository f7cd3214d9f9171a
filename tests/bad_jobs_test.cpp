// Invalid jobs and data: each is refused with file, line, key, the value found, the value expected, and a remedy where there is one. The
// cases are a table, so that the reader and the binary are tested with the same list.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/job.h"
#include "engine/training.h"
#include "learn/data.h"

namespace motley {
namespace {

/// A text with an error in one line, under one key; the message contains every needle.
struct BadJob {
  std::string name;
  std::string text;
  int line{};
  std::string key;
  std::vector<std::string> needles;
  friend void PrintTo(const BadJob& job, std::ostream* out) { *out << job.name; }
};

/// Ends a job whose invalid lines come first.
const std::string workers = "\n[[cluster.node]]\nname = \"w\"\ncount = 4\nsamples_per_second = 250\n";

/// A complete job of one node; `line` is its line 4.
std::string node(const std::string& line) { return "[[cluster.node]]\nname = \"w\"\nsamples_per_second = 250\n" + line + "\n"; }

/// A complete job with one fault; `lines` start at its line 2.
std::string fault(const std::string& lines) { return "[[cluster.fault]]\n" + lines + workers; }

std::vector<BadJob> bad_jobs_of_training() {
  return {
      {"UnknownKey", "[job]\nmax_epoch = 3" + workers, 2, "job.max_epoch", {"found an unknown key", "did you mean max_epochs?"}},
      {"UnknownSection", "[jobs]\nseed = 1" + workers, 1, "jobs", {"found an unknown key", "did you mean job?"}},
      {"PipelineUnknown", "[strategy]\nkind = \"gpip\"" + workers, 2, "strategy.kind", {"did you mean gpipe?"}},
      {"SectionIsNoTable", "job = 3" + workers, 1, "job", {"found an integer 3", "expected a table, [job]"}},
      {"SeedIsText", "[job]\nseed = \"x\"" + workers, 2, "job.seed", {"found a string \"x\"", "expected an integer of at least 0"}},
      {"SeedIsNegative", "[job]\nseed = -1" + workers, 2, "job.seed", {"found -1"}},
      {"SeedIsADate", "[job]\nseed = 2024-01-01" + workers, 2, "job.seed", {"found a date or time"}},
      {"TargetIsAPercentage",
       "[job]\ntarget_accuracy = 86" + workers,
       2,
       "job.target_accuracy",
       {"found 86", "expected a number above 0 and at most 1", "0.86"}},
      {"EvaluateEveryZero", "[job]\nevaluate_every = 0" + workers, 2, "job.evaluate_every", {"found 0", "expected a number above 0"}},
      {"EvaluateEveryTooOften", "[job]\nevaluate_every = 1e-9" + workers, 2, "job.evaluate_every", {"of at least 0.0001"}},
      {"EpochsInfinite", "[job]\nmax_epochs = inf" + workers, 2, "job.max_epochs", {"found inf", "expected a number"}},
      {"EpochsHuge", "[job]\nmax_epochs = 1e300" + workers, 2, "job.max_epochs", {"of at most 1000000"}},
      {"NameWithSlash", "[job]\nname = \"../../etc\"" + workers, 2, "job.name", {"found a string \"../../etc\"", "letters, digits"}},
      {"ModelUnknown",
       "[model]\nkind = \"mpl\"" + workers,
       2,
       "model.kind",
       {"found \"mpl\"", "expected one of \"mlp\"", "did you mean mlp?"}},
      {"HiddenIsEmpty", "[model]\nhidden = []" + workers, 2, "model.hidden", {"found an array of 0 values", "1 to 64 integers"}},
      {"HiddenHoldsText", "[model]\nhidden = [128, \"64\"]" + workers, 2, "model.hidden", {"found a string \"64\"", "expected an integer"}},
      {"TimingWithoutValues",
       "[model]\nkind = \"none\"\n[data]\nsamples = 10" + workers,
       1,
       "model.values",
       {"found nothing", "expected an integer"}},
      {"TimingWithoutSamples",
       "[model]\nkind = \"none\"\nvalues = 10\n[data]" + workers,
       4,
       "data.samples",
       {"found nothing", "samples of one epoch"}},
      {"ActivationsOfARealModel",
       "[model]\nactivation_bytes_per_sample = 100" + workers,
       2,
       "model.activation_bytes_per_sample",
       {"found 100", "its activations are measured"}},
      {"TimingWithData",
       "[model]\nkind = \"none\"\nvalues = 10\n[data]\nkind = \"mnist\"\nsamples = 10" + workers,
       5,
       "data.kind",
       {"found \"mnist\"", "\"none\""}},
      {"NoDataForAModel", "[data]\nkind = \"none\"" + workers, 2, "data.kind", {"found \"none\"", "the data set of the model"}},
      {"EvaluateOnTraining", "[data]\nevaluate = \"train\"" + workers, 2, "data.evaluate", {"\"test\", \"validation\""}},
      {"RateZero", "[optimizer]\nlr = 0.0" + workers, 2, "optimizer.lr", {"found 0", "expected a number above 0 (learning rate)"}},
      {"RateNan", "[optimizer]\nlr = nan" + workers, 2, "optimizer.lr", {"found nan"}},
      {"MomentumOne", "[optimizer]\nmomentum = 1.0" + workers, 2, "optimizer.momentum", {"found 1", "from 0 to below 1"}},
      {"ScheduleUnknown", "[optimizer]\nschedule = \"cosin\"" + workers, 2, "optimizer.schedule", {"did you mean cosine?"}},
      {"BatchSmallerThanTheCluster", "[batch]\nglobal = 3" + workers, 2, "batch.global", {"found 3", "expected at least 4"}},
      {"PerWorkerSum",
       "[batch]\nglobal = 128\nper_worker = [58, 29, 29, 11]" + workers,
       3,
       "batch.per_worker",
       {"found a sum of 127", "expected 128"}},
      {"PerWorkerLength",
       "[batch]\nglobal = 128\nper_worker = [64, 64]" + workers,
       3,
       "batch.per_worker",
       {"found an array of 2 values", "expected 4 entries"}},
      {"PerWorkerZero", "[batch]\nglobal = 128\nper_worker = [128, 0, 0, 0]" + workers, 3, "batch.per_worker", {"found 0", "from 1"}},
      {"StrategyUnknown", "[strategy]\nkind = \"bps\"" + workers, 2, "strategy.kind", {"found \"bps\"", "did you mean bsp?"}},
      {"StrategyUnknownWithAKnob",
       "[strategy]\nkind = \"local-sdg\"\nsteps = 4" + workers,
       2,
       "strategy.kind",
       {"did you mean local-sgd?"}},
      {"BoundsCrossed",
       "[strategy]\nkind = \"dssp\"\nbound = 5\nbound_max = 4" + workers,
       4,
       "strategy.bound_max",
       {"found 4", "expected at least 5"}},
      {"BoundAboveThePresetOfItsUpperEnd",
       "[strategy]\nkind = \"dssp\"\nbound = 20" + workers,
       3,
       "strategy.bound",
       {"found 20", "expected at most 15, which is the preset of bound_max"}},
      {"KnobOfAnotherStrategy",
       "[strategy]\nkind = \"bsp\"\nsteps = 16" + workers,
       3,
       "strategy.steps",
       {"found a knob that bsp does not take", "expected one of bits, lookahead, clip, momentum, lr"}},
      {"KnobOfAnotherStrategyThanTheDefault",
       "[strategy]\nreplan = 2" + workers,
       2,
       "strategy.replan",
       {"found a knob that bsp does not take"}},
      {"LookaheadTooFar", "[strategy]\nlookahead = 1000" + workers, 2, "strategy.lookahead", {"found 1000", "from 0 to 64"}},
      {"StepsZero", "[strategy]\nkind = \"local-sgd\"\nsteps = 0" + workers, 3, "strategy.steps", {"found 0"}},
      {"MoreMicroBatchesThanSamples",
       "[batch]\nglobal = 8\n[pipeline]\nmicro_batches = 9" + workers,
       4,
       "pipeline.micro_batches",
       {"found 9", "expected at most 8"}},
      {"BoundariesDescend", "[pipeline]\nboundaries = [3, 3]" + workers, 2, "pipeline.boundaries", {"expected ascending numbers"}},
      {"WireOrderUnknown", "[wire]\norder = \"lifo\"" + workers, 2, "wire.order", {"found \"lifo\"", "\"priority\", \"fifo\""}},
      {"SliceWithoutUnit", "[wire]\nslice = \"64 apples\"" + workers, 2, "wire.slice", {"found a string \"64 apples\"", "\"64KiB\""}},
      {"SliceOdd", "[wire]\nslice = 1001" + workers, 2, "wire.slice", {"found 1001", "a multiple of 4"}},
  };
}

std::vector<BadJob> bad_jobs_of_clusters() {
  return {
      {"NoNodes", "[job]\nseed = 1\n", 1, "cluster.node", {"found nothing", "at least one [[cluster.node]]"}},
      {"EmptyListOfNodes", "[cluster]\nnode = []\n", 2, "cluster.node", {"found an array of 0 values", "at least one [[cluster.node]]"}},
      {"NodeIsATable", "[cluster.node]\nname = \"w\"", 1, "cluster.node", {"found a table of 1 key", "[[cluster.node]]"}},
      {"SpeedMissing",
       "\n[[cluster.node]]\nname = \"w\"",
       2,
       "cluster.node.samples_per_second",
       {"found nothing", "expected a number above 0"}},
      {"SpeedNegative",
       "[[cluster.node]]\nsamples_per_second = -5",
       2,
       "cluster.node.samples_per_second",
       {"found -5, expected a number above 0, in samples/s (samples that the device finishes per second)"}},
      {"SpeedNearlyZero", "[[cluster.node]]\nsamples_per_second = 1e-300", 2, "cluster.node.samples_per_second", {"of at least 0.001"}},
      {"CountHuge", node("count = 1000000"), 4, "cluster.node.count", {"found 1000000", "from 1 to 100000"}},
      {"CountZero", node("count = 0"), 4, "cluster.node.count", {"found 0"}},
      {"CountsHugeTogether",
       node("count = 60000") + node("count = 60000") + "[batch]\nglobal = 60000",
       8,
       "cluster.node.count",
       {"found 120000 nodes in all", "at most 100000"}},
      {"TwoNodesOfOneName", node("") + node(""), 6, "cluster.node.name", {"found a second node called \"w\""}},
      {"JitterNegative", node("jitter = -0.1"), 4, "cluster.node.jitter", {"found -0.1", "from 0 to 3"}},
      {"DeviceUnknown", node("device = \"gpu\""), 4, "cluster.node.device", {"found \"gpu\"", "\"cuda:0\""}},
      {"DeviceWithoutNumber", node("device = \"cuda:\""), 4, "cluster.node.device", {"found \"cuda:\""}},
      {"PartOfNoGpu", node("device = \"cpu\"\ngpu_percent = 40"), 5, "cluster.node.gpu_percent", {"found 40", "not a GPU", "cuda:0"}},
      {"PartOfAGpuTooLarge", node("device = \"cuda:0\"\ngpu_percent = 101"), 5, "cluster.node.gpu_percent", {"found 101", "from 1 to 100"}},
      {"PrecisionUnknown", "[model]\nprecision = \"fp8\"" + workers, 2, "model.precision", {"found \"fp8\"", "bf16"}},
      {"SlicesZero", "[pipeline]\nslices = 0" + workers, 2, "pipeline.slices", {"found 0", "from 1 to 1024"}},
      {"MemoryNegative", node("memory = \"-8GiB\""), 4, "cluster.node.memory", {"found \"-8GiB\"", "of at least 0"}},
      {"GroupUnknown", node("group = \"rack\""), 4, "cluster.node.group", {"found \"rack\"", "[[cluster.group]]"}},
      {"SlowdownsWithoutGap", node("slowdowns = { mean_length_s = 1 }"), 4, "cluster.node.slowdowns.mean_gap_s", {"found nothing"}},
      {"LinkWithoutBandwidth", node("link = { bandwidth = 0 }"), 4, "cluster.node.link.bandwidth", {"found 0", "\"1Gbit/s\""}},
      {"LinkSaidTwice",
       "[cluster.link]\nbandwidth = 1e6\nup = 1e6" + workers,
       2,
       "cluster.link.bandwidth",
       {"either bandwidth (both ways), or up and down"}},
      {"LinkInWrongUnit",
       "[cluster.link]\nbandwidth = \"1GB\"" + workers,
       2,
       "cluster.link.bandwidth",
       {"found a string \"1GB\"", "expected bytes per second"}},
      {"LatencyNegative", "[cluster.link]\nlatency_s = -1" + workers, 2, "cluster.link.latency_s", {"found -1"}},
      {"TooManyServers", "[cluster.server]\ncount = 2000" + workers, 2, "cluster.server.count", {"found 2000", "from 1 to 1024"}},
      {"DistancesOfOtherServers",
       "[cluster.server]\ncount = 3\ndistances_s = [0, 0.1]" + workers,
       3,
       "cluster.server.distances_s",
       {"found 2 of them", "an array of 3 numbers"}},
      {"GroupWithoutBandwidth",
       "[[cluster.group]]\nname = \"rack\"" + workers,
       1,
       "cluster.group.bandwidth",
       {"found nothing", "bytes per second"}},
      {"DeadlineBeforeHeartbeat",
       "[cluster]\nheartbeat_s = 2\ndeadline_s = 1" + workers,
       3,
       "cluster.deadline_s",
       {"found 1", "more than heartbeat_s, 2"}},
      {"FaultOnUnknownNode",
       fault("at = 1\nkind = \"kill\"\nnode = \"w-9\""),
       4,
       "cluster.fault.node",
       {"found \"w-9\"", "did you mean w-1?"}},
      {"FaultInThePast", fault("at = -1\nkind = \"kill\"\nnode = \"w-1\""), 2, "cluster.fault.at", {"found -1", "of at least 0"}},
      {"FaultOfUnknownKind", fault("at = 1\nkind = \"die\"\nnode = \"w-1\""), 3, "cluster.fault.kind", {"found \"die\"", "\"kill\""}},
      {"PauseWithoutEnd",
       fault("at = 1\nkind = \"pause\"\nnode = \"w-1\""),
       1,
       "cluster.fault.for",
       {"found nothing", "seconds that it lasts"}},
      {"SlowWithoutFactor",
       fault("at = 1\nkind = \"slow\"\nnode = \"w-1\"\nfor = 2"),
       1,
       "cluster.fault.factor",
       {"found nothing", "times slower"}},
      {"KillThatLasts",
       fault("at = 1\nkind = \"kill\"\nnode = \"w-1\"\nfor = 2"),
       5,
       "cluster.fault.for",
       {"found 2", "only pause, slow, partition and hang last"}},
      {"KilledTwice",
       "[[cluster.fault]]\nat = 2\nkind = \"kill\"\nnode = \"w-1\"\n" + fault("at = 1\nkind = \"leave\"\nnode = \"w-1\""),
       3,
       "cluster.fault.kind",
       {"found \"kill\"", "expected \"join\"", "w-1 is not in the cluster"}},
      {"NobodyAtTheStart",
       node("") + "[[cluster.fault]]\nat = 1\nkind = \"join\"\nnode = \"w\"",
       5,
       "cluster.fault",
       {"at least one worker present at the start"}},
  };
}

std::vector<BadJob> bad_jobs() {
  std::vector<BadJob> all = bad_jobs_of_training();
  for (BadJob& job : bad_jobs_of_clusters()) all.push_back(std::move(job));
  return all;
}

/// A folder that is removed after the test; each test process has its own, since tests run in parallel.
class Refusal : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }

  static std::string refusal_of_job(const std::string& file, const std::vector<std::string>& overrides = {}) {
    const auto job = config::read_job(file, overrides, engine::known_kinds());
    if (job.ok()) return "accepted";
    EXPECT_EQ(job.error().next, Next::tell_user);
    return job.error().message;
  }

  static std::string refusal_of_data(const std::string& folder) {
    const auto data = learn::load({.kind = "fashion-mnist", .path = folder});
    if (data.ok()) return "accepted";
    EXPECT_EQ(data.error().next, Next::tell_user);
    return data.error().message;
  }

  static void expect_in(const std::string& message, const std::vector<std::string>& needles) {
    for (const std::string& needle : needles)
      EXPECT_NE(message.find(needle), std::string::npos) << "no '" << needle << "' in:\n" << message;
  }

  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / fmt::format("motley_bad_jobs_{}", getpid());
};

class BadJobs : public Refusal, public testing::WithParamInterface<BadJob> {};

TEST_P(BadJobs, Are_refused_at_their_line_and_key) {
  const BadJob& bad = GetParam();
  const std::string file = write("bad.toml", bad.text);
  const std::string message = refusal_of_job(file);
  expect_in(message, {fmt::format("{}:{}: {}: found ", file, bad.line, bad.key), ", expected "});
  expect_in(message, bad.needles);
  EXPECT_EQ(message.find('\n'), std::string::npos) << "one mistake, but several errors:\n" << message;
}

/// The binary: exit code 2, the error on stderr, nothing on stdout, no crash.
TEST_F(Refusal, Every_bad_job_ends_the_binary_with_exit_code_two) {
  for (const BadJob& bad : bad_jobs()) {
    const std::string file = write("bad.toml", bad.text);
    const std::string err = (folder_ / "stderr").string();
    const std::string out = (folder_ / "stdout").string();
    const int status = std::system(("'" MOTLEY_BINARY "' simulate '" + file + "' --json >'" + out + "' 2>'" + err + "'").c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << bad.name << ": status " << status;
    std::ifstream reported(err);
    expect_in({std::istreambuf_iterator<char>(reported), {}}, {fmt::format("{}:{}: {}: found ", file, bad.line, bad.key), ", expected "});
    EXPECT_EQ(std::filesystem::file_size(out), 0U) << bad.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, BadJobs, testing::ValuesIn(bad_jobs()), [](const auto& bad) { return bad.param.name; });

TEST_F(Refusal, Several_errors_are_reported_together) {
  const std::string file = write("bad.toml", "[job]\nseed = -1\n[optimizer]\nlr = 0\n[batch]\nglobal = \"many\"\n" + workers);
  const std::string message = refusal_of_job(file);
  expect_in(message, {file + ":2: job.seed: found -1", "\n" + file + ":4: optimizer.lr: found 0",
                      "\n" + file + ":6: batch.global: found a string \"many\""});
}

TEST_F(Refusal, File_that_is_not_TOML_names_line_and_column) {
  for (const auto& [text, line] : std::vector<std::pair<std::string, int>>{{"[job]\nseed = = 1\n", 2},
                                                                           {"[job]\nseed = 1\nseed = 2\n", 3},
                                                                           {"[job\nseed = 1\n", 1},
                                                                           {"[job]\nseed = 99999999999999999999\n", 2},
                                                                           {"a = \"\xff\xfe\"\n", 1}}) {
    const std::string file = write("bad.toml", text);
    const std::string message = refusal_of_job(file);
    expect_in(message, {fmt::format("{}:{}:", file, line), "this is not TOML"});
  }
}

TEST_F(Refusal, Missing_job_names_the_path_and_the_nearest_file) {
  const std::string file = write("mixed.toml", workers);
  expect_in(refusal_of_job((folder_ / "mixd.toml").string()),
            {"mixd.toml: found no such file, expected a job file", "did you mean " + file + "?"});
  expect_in(refusal_of_job("/nowhere/at/all.toml"), {"/nowhere/at/all.toml: found no such file", "examples/mixed.toml"});
  expect_in(refusal_of_job(folder_.string()), {"found a folder, expected a job file"});
}

TEST_F(Refusal, Override_is_checked_like_the_file) {
  const std::string file = write("good.toml", workers);
  expect_in(refusal_of_job(file, {"optimizer.momentum=2"}),
            {"--set optimizer.momentum=2: optimizer.momentum: found 2, expected a number from 0 to below 1"});
  expect_in(refusal_of_job(file, {"cluster.node.w.jiter=0"}),
            {"--set cluster.node.w.jiter=0: cluster.node.jiter: found an unknown key", "did you mean jitter?"});
  expect_in(refusal_of_job(file, {"cluster.node.1.jitter=0"}),
            {"--set cluster.node.1.jitter=0: cluster.node: found no element 1, expected an index"});
  expect_in(refusal_of_job(file, {"job.seed"}), {"--set job.seed: found no '=', expected key=value"});
}

/// The bytes of an idx file of `count` blank images of 28x28.
std::string images(std::uint32_t magic, unsigned char count) {
  std::string bytes;
  for (const std::uint32_t word : {magic, std::uint32_t{count}, 28U, 28U})
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift & 0xffU);
  return bytes + std::string(std::size_t{count} * 28 * 28, '\7');
}

std::string packed(const std::filesystem::path& file, const std::string& bytes) {
  gzFile out = gzopen(file.c_str(), "wb");
  gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(out);
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(Refusal, Missing_data_names_the_file_and_its_source) {
  expect_in(refusal_of_data("/nowhere/at/all"),
            {"/nowhere/at/all/train-images-idx3-ubyte", "found no such file", "expected an idx file of images", "dataset-fashion-mnist"});
}

TEST_F(Refusal, Truncated_data_is_named) {
  const std::string whole = packed(folder_ / "whole.gz", images(0x0803, 20));
  const std::string file = write("train-images-idx3-ubyte.gz", whole.substr(0, whole.size() / 2));
  expect_in(refusal_of_data(folder_.string()), {file, "cut short", "expected an idx file of images"});
}

TEST_F(Refusal, Data_of_another_kind_is_named) {
  const std::string file = write("train-images-idx3-ubyte", images(0x0801, 20));
  expect_in(refusal_of_data(folder_.string()), {file, "found magic number 0x00000801", "expected 0x00000803"});
}

}  // namespace
}  // namespace motley
