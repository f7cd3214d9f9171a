// Every reader of trace files is given 2,000 damaged ones and must terminate with a result.
//   MOTLEY_MUTATION_SEED=k   only this one
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>

#include "base/rng.h"
#include "checkers.h"
#include "engine/results.h"
#include "engine/simulation.h"
#include "real_trace.h"
#include "report/chrome_trace.h"
#include "report/metrics.h"
#include "report/page.h"
#include "report/screen.h"
#include "report/table.h"
#include "report/tensorboard.h"
#include "state_checker.h"
#include "trace/reading.h"
#include "trace/record.h"
#include "trace/sinks.h"

namespace motley::engine {
namespace {

constexpr const char* job_text = R"(
[job]
max_epochs = 2
evaluate_every = 0.2
[model]
kind = "none"
values = 4000
[data]
samples = 1500
[batch]
global = 64
[pipeline]
profile = "BLOCKS"
[[cluster.node]]
name = "a"
samples_per_second = 1000
jitter = 0.2
[[cluster.node]]
name = "b"
samples_per_second = 1000
[[cluster.node]]
name = "c"
samples_per_second = 1000
[[cluster.node]]
name = "slow"
samples_per_second = 200
[cluster]
fault = [{at=0.5, kind="kill", node="a"}, {at=0.8, kind="join", node="a"}, {at=1.0, kind="slow", node="slow", factor=20, for=0.5}]
)";

constexpr std::uint64_t epoch_samples = 1500;

/// The records of one trace file for each of these strategies, without its header.
class TraceMutations : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::path(testing::TempDir()) / ("motley-trace-mutations-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    std::string blocks, text = job_text;
    for (const char* name : {"a", "b", "c", "d"})
      blocks += std::string("[[block]]\nname = \"") + name +
                "\"\nforward_s = 1\ninput_s = 1\nweight_s = 1\noutput_bytes = 100\nkept_bytes = 200\nparameter_bytes = 4000\n";
    std::ofstream(folder / "blocks.toml") << blocks;
    text.replace(text.find("BLOCKS"), 6, (folder / "blocks.toml").string());
    auto read = config::parse_job(text, "the test's job");
    ASSERT_TRUE(read.ok()) << read.error().message;
    job = *read;
    auto loaded = load_material(job);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    for (const char* strategy : {"hps", "adaptive", "grouped", "adapipe"}) {
      SimulationOptions options;
      options.strategy = *config::read_strategy(job, strategy);
      options.label = strategy;
      std::string bytes;
      trace::Writer writer(
          [&](std::span<const std::byte> block) { bytes.append(reinterpret_cast<const char*>(block.data()), block.size()); });
      options.also = &writer;
      const auto ran = simulate(job, *loaded, options);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
      writer.flush();
      traces.push_back(bytes.substr(trace::file_header.size()));
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  /// Applies up to sixteen mutations: flipped bits, a field of another size, records of another trace, a truncated end.
  [[nodiscard]] std::string damaged(Rng& rng) const {
    std::string bytes = traces[rng.below(traces.size())];
    const std::size_t begin = rng.below(bytes.size() / trace::record_bytes) * trace::record_bytes;
    bytes = bytes.substr(begin, (1 + rng.below(800)) * trace::record_bytes);  // a part of it, mostly without the join events
    if (rng.below(2) == 0) bytes.insert(0, traces[rng.below(traces.size())].substr(0, (4 + rng.below(100)) * trace::record_bytes));
    for (std::uint64_t times = 1 + rng.below(16); times > 0 && !bytes.empty(); --times) {
      const std::size_t at = rng.below(bytes.size());
      const std::size_t record = at / trace::record_bytes * trace::record_bytes;
      switch (rng.below(17) % 5) {
        case 0: bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1U << rng.below(8))); break;
        case 1: {
          constexpr std::array<std::size_t, 10> fields{8, 9, 13, 17, 21, 25, 29, 37, 45, 48};  // of most kinds
          constexpr double infinite = std::numeric_limits<double>::infinity();
          constexpr std::array<double, 5> extreme{infinite, -infinite, std::numeric_limits<double>::quiet_NaN(), 1e99, -1e308};
          const bool real = rng.below(4) == 0;
          const std::uint64_t number = real ? std::bit_cast<std::uint64_t>(extreme.at(rng.below(5))) : rng.bits() >> rng.below(64);
          const std::size_t field = record + fields.at(rng.below(fields.size()));
          std::memcpy(bytes.data() + field, &number, std::min<std::size_t>(sizeof number, bytes.size() - field));
          break;
        }
        case 2: {
          const std::string& other = traces[rng.below(traces.size())];
          const std::size_t from = rng.below(other.size() / trace::record_bytes) * trace::record_bytes;
          bytes.insert(record, other.substr(from, (1 + rng.below(20)) * trace::record_bytes));
          break;
        }
        case 3: bytes.erase(record, (1 + rng.below(20)) * trace::record_bytes); break;
        case 4: bytes.resize(at); break;
      }
    }
    bytes.insert(0, trace::file_header);
    if (rng.below(50) == 0) bytes.resize(rng.below(trace::file_header.size()));
    return bytes;
  }

  /// Resumes a run from the trace, and computes the results at its end.
  void relive(std::span<const trace::Event> events) const {
    RunResult run;
    run.label = "hps";
    trace::Timeline timeline(at_seconds(0.1), from_seconds(1));
    trace::Pipeline pipeline(0, 40);
    std::size_t text = 0;
    const std::vector<std::string> names{"a", "b"};
    report::Metrics metrics([&](std::string_view line) { text += line.size(); }, {}, from_seconds(5));
    report::ChromeTrace chrome([&](std::string_view piece) { text += piece.size(); }, {});
    report::Screen screen({"run", 3000, 100, true, 64}, names);
    auto file = report::EventFile::open(folder, 0, "host");
    ASSERT_TRUE(file.ok());
    report::TensorBoard board(*file, 0);
    trace::Tee all({&run.summary, &run.history, &run.state_timelines, &timeline, &pipeline, &metrics, &chrome, &screen, &board});
    for (const trace::Event& event : events) all.on_event(event);
    chrome.finish();
    run.timeline = timeline.lanes();
    run.pipeline.emplace();
    run.pipeline->stages = pipeline.stages();
    run.pipeline->boxes = pipeline.boxes();
    run.pipeline->utilization = pipeline.utilization();
    run.pipeline->steady_samples_per_second = pipeline.updates_per_second();
    run.sum_of_parts = 3200;
    const report::Comparison table = comparison(job, {run}, {0}, "command");
    EXPECT_FALSE(boost::json::serialize(run_json(job, run)).empty());
    EXPECT_FALSE(run_text(job, run).empty());
    EXPECT_FALSE(report::text_table(table).empty());
    EXPECT_FALSE(report::page(table).empty());
    EXPECT_LE(run.summary.workers().size() + run.state_timelines.workers().size() + pipeline.stages().size(), 3 * events.size());
  }

  /// Passes the events to the readers of the tests.
  static void read_independently(const std::string& bytes, std::span<const trace::Event> events) {
    using namespace checkers;
    TimeOnlyGrows time;
    VersionsOnlyGrow versions;
    StalenessBound staleness({8, 4});
    RoundsDoNotOverlap rounds;
    EverySampleOnce once(epoch_samples, 2 * epoch_samples);
    Liveness alive({from_seconds(1), from_seconds(1), from_seconds(1)});
    WeightsSum weights({WeightsSum::Of::gradients, 64, false});
    FormerMembersFenced fenced;
    WithinMemory memory({10, 0, 20, 30});
    StatesFollowFromVersions states({});
    trace::Tee all({&time, &versions, &staleness, &rounds, &once, &alive, &weights, &fenced, &memory, &states});
    for (const trace::Event& event : events) all.on_event(event);
    const real::Trace trace = real::read_trace(bytes);
    EXPECT_FALSE(real::ledger_faults(trace, epoch_samples, 2 * epoch_samples).empty()) << "a part of a trace is not a complete run";
    EXPECT_FALSE(real::pipeline_faults(trace, 46, 8, 1).empty());
  }

  std::filesystem::path folder;
  config::Job job;
  std::vector<std::string> traces;
};

TEST_F(TraceMutations, EveryReaderAcceptsTwoThousandDamagedTraces) {
  const char* one = std::getenv("MOTLEY_MUTATION_SEED");
  const std::uint64_t from = one != nullptr ? std::strtoull(one, nullptr, 10) : 0;
  for (std::uint64_t seed = from; seed < (one != nullptr ? from + 1 : 2000); ++seed) {
    SCOPED_TRACE("MOTLEY_MUTATION_SEED=" + std::to_string(seed));
    Rng rng(seed, "mutations");
    const std::string bytes = damaged(rng);
    const auto events = trace::read_events(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(events.ok()) << events.error().message;
    relive(rng.below(3) == 0 ? trace::events_until(*events, Version{rng.below(60)}, 1).events : *events);
    read_independently(bytes, *events);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace motley::engine
