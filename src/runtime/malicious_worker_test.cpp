// A worker that reports values as finite that are not: under every strategy and with every codec it is expelled by name, none of its values
// is applied, and the others finish the training.
#include <fmt/ranges.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "codec/magnitude.h"
#include "runtime/malicious_worker_for_tests.h"
#include "runtime/processes_for_tests.h"
#include "transport/segment.h"

namespace motley::runtime {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr auto sent_not_finite = std::uint8_t{5};  // of protocol::LeaveReason, as in traces

struct Lie {
  std::string name;
  std::string strategy = "bsp";
  std::uint8_t bits = 32;
  std::uint32_t slice = 1;  // of three with parameters; the fourth has statistics
  float value = nan;
  std::uint64_t from_step = 0;
  bool supports_borrowing = false;
};
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

class MaliciousWorkerTest : public Processes, public testing::WithParamInterface<Lie> {
 protected:
  std::unique_ptr<MaliciousWorker> worker(std::uint32_t node_index, MaliciousWorker::Numbers numbers, bool supports_borrowing = false) {
    MaliciousWorker::Options made{.node = node_name(node_index), .node_index = node_index};
    const store::Layout layout = linear_layout();
    for (const store::Slice& slice : layout.slices) made.counts.push_back(slice.count);
    made.bits = [layout](SliceId slice, std::uint8_t ordered) { return layout[slice].bits(ordered); };
    made.supports_borrowing = supports_borrowing;
    return std::make_unique<MaliciousWorker>(io, address, options, std::move(made), std::move(numbers));
  }
};

TEST_P(MaliciousWorkerTest, IsExpelledByNameAndTheOthersFinish) {
  const Lie& lie = GetParam();
  job.strategy = lie.strategy;
  if (lie.bits != 32) job.knobs.bits = policy::BitsConfig{.dynamic = false, .fixed = {lie.bits, lie.bits}};
  start_chief();
  const auto honest = [](const wire::Order&, SliceId, std::vector<float>&) {};
  bool lied = false;
  const auto malicious = worker(
      1,
      [&](const wire::Order& order, SliceId slice, std::vector<float>& values) {
        if (slice.value != lie.slice || order.step.value < lie.from_step) return;
        values.back() = lie.value;
        lied = true;
      },
      lie.supports_borrowing);
  const auto first = worker(0, honest), last = worker(2, honest);
  ASSERT_TRUE(chief_is_over());

  ASSERT_TRUE(chief->over->ok()) << chief->over->error().message;
  ASSERT_TRUE(lied);
  EXPECT_EQ(malicious->borrowed, lie.supports_borrowing && transport::has_segments());
  for (const float value : chief->values()) EXPECT_LT(std::abs(value), 1e3F);
  expect_every_sample_once();
  const auto gone = chief->story.all<trace::Left>();
  const auto expelled = std::find_if(gone.begin(), gone.end(), [](const trace::Left& e) { return e.why == sent_not_finite; });
  ASSERT_NE(expelled, gone.end());
  EXPECT_EQ(expelled->worker, malicious->id);
  EXPECT_EQ(std::count_if(gone.begin(), gone.end(), [](const trace::Left& e) { return e.why >= 3; }), 1) << "no other worker";
  const std::string who = fmt::format("worker {} on node {}", malicious->id->value, node_name(1));
  const auto names_it = [&](const std::string& line) { return line.find("expelled " + who) != std::string::npos; };
  EXPECT_EQ(std::count_if(chief->log.begin(), chief->log.end(), names_it), 1) << fmt::format("{}", fmt::join(chief->log, "\n"));
  EXPECT_TRUE(malicious->stopped);
}

std::vector<Lie> lies() {
  std::vector<Lie> all;
  for (const std::string strategy : {"bsp", "lb-bsp", "asp", "ssp", "dssp", "local-sgd", "hps", "multistep", "grouped", "adaptive"}) {
    std::string name = strategy;
    name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
    all.push_back({.name = name, .strategy = strategy});
    all.push_back({.name = name + "StatisticLater", .strategy = strategy, .slice = 3, .value = infinity, .from_step = 2});
  }
  for (const std::uint8_t bits : {16, 8, 4, 2}) {
    all.push_back({.name = fmt::format("bits{}", bits), .strategy = "hps", .bits = bits});
    all.push_back({.name = fmt::format("bits{}Huge", bits), .strategy = "hps", .bits = bits, .value = -1e38F, .from_step = 1});
  }
  all.push_back({.name = "Huge", .value = 1e38F});
  all.push_back({.name = "MinusInfinity", .strategy = "asp", .value = -infinity});
  all.push_back({.name = "Borrowed", .slice = 0, .from_step = 3, .supports_borrowing = true});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kinds, MaliciousWorkerTest, testing::ValuesIn(lies()), [](const auto& lie) { return lie.param.name; });

/// Infinity and its opposite sum to NaN, and two huge values to infinity: each contribution is checked, not the sum.
TEST_F(Processes, WorkersWhoseValuesCancelOutAreAllExpelled) {
  start_chief();
  std::vector<std::unique_ptr<MaliciousWorker>> all;
  for (std::uint32_t node_index = 0; node_index < 3; ++node_index) {
    MaliciousWorker::Options made{.node = node_name(node_index), .node_index = node_index};
    for (const store::Slice& slice : linear_layout().slices) made.counts.push_back(slice.count);
    const float value = node_index == 0 ? infinity : node_index == 1 ? -infinity : 0.001F;
    all.push_back(
        std::make_unique<MaliciousWorker>(io, address, options, std::move(made),
                                          [value](const wire::Order&, SliceId, std::vector<float>& values) { values.front() = value; }));
  }
  ASSERT_TRUE(chief_is_over());
  expect_every_sample_once();
  for (const float value : chief->values()) EXPECT_TRUE(std::isfinite(value));
  EXPECT_TRUE(all[0]->stopped && all[1]->stopped);
  EXPECT_EQ(all[0]->pushed, 1U);
  EXPECT_EQ(all[1]->pushed, 1U);
}

/// A loss that is not finite, in the middle of the training or in the last evaluation, makes the run fail.
TEST_F(Processes, InfiniteLossEndsTheTrainingAsDiverged) {
  for (const int bad : {2, 3}) {
    SCOPED_TRACE(bad);
    address = fresh_socket();
    job.checkpoint_every = 5;
    start_chief();
    auto calls = std::make_shared<std::atomic<int>>(0);
    chief->loss = [calls, bad](std::span<const float>) { return ++*calls == bad ? double{nan} : 1.0; };
    for (std::uint32_t n = 0; n < job.quorum; ++n) start_worker(n);
    ASSERT_TRUE(all_are_over());
    ASSERT_TRUE(chief->over->ok()) << chief->over->error().message;
    EXPECT_EQ((*chief->over)->why, protocol::EndReason::diverged);
    const auto finished = chief->story.all<trace::Finished>();
    ASSERT_EQ(finished.size(), 1U) << "one outcome is recorded";
    EXPECT_EQ(finished.back().why, static_cast<std::uint8_t>(protocol::EndReason::diverged));
    const auto says_so = [](const std::string& line) { return line.find("training diverged") == 0; };
    EXPECT_EQ(std::count_if(chief->log.begin(), chief->log.end(), says_so), 1);
    expect_all_good();
    workers.clear();
  }
}

/// Weight decay with which the model overflows within a few updates: the values of all workers do.
TEST_F(Processes, AModelThatIsNotFiniteIsNeverSaved) {
  job.checkpoint_every = 1;
  job.optimizer.weight_decay = 1e30;  // w -= 0.1 * 1e30 * w, again and again
  start_all();
  ASSERT_TRUE(all_are_over());
  ASSERT_TRUE(chief->over->ok()) << chief->over->error().message;
  EXPECT_EQ((*chief->over)->why, protocol::EndReason::diverged);
  for (const Saved& saved : chief->saved()) {
    EXPECT_TRUE(codec::all_finite(std::as_const(*saved.values).floats()));
    EXPECT_TRUE(codec::all_finite(saved.moments.first));
  }
  EXPECT_EQ(chief->story.count<trace::Left>(), 0U) << "no worker is at fault";
}

}  // namespace
}  // namespace motley::runtime
