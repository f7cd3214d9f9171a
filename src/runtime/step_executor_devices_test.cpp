// Devices of a step executor: emulated ones, those with a batch multiple, and the times that each reports.
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <thread>

#include "runtime/step_executor_for_tests.h"

namespace motley::runtime {
namespace {

TEST_F(StepExecutorTest, AnEmulatedDeviceIsReadyAtTheEndOfTheStep) {
  make({}, a_device(1e9));
  const auto computation = begin(0);
  deliver_all(*computation);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  EXPECT_TRUE(slices.empty());
  EXPECT_EQ(held(*computation->out), by_hand(computation->order, linear_start()));
}

TEST_F(StepExecutorTest, LayerTimingDelaysSlicesToTheirTime) {
  constexpr double samples_per_second = 40;  // 8 samples: 0.2 s
  const store::LayerTiming layer_timing{{0, 0.1, 0.2, 0}, {1, 0.8, 0.6, 1}};
  make({}, a_device(samples_per_second), layer_timing);
  const auto computation = begin(0);
  deliver_all(*computation);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  std::vector<std::uint32_t> order;
  for (const Slice& slice : slices) order.push_back(slice.slice);
  EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), layout.slices.size());
  EXPECT_LT(std::find(order.begin(), order.end(), 2U), std::find(order.begin(), order.end(), 0U));
  for (const Slice& slice : slices)
    EXPECT_GE(slice.at_s, layer_timing.gradient_ready[slice.slice] * 8 / samples_per_second) << "slice " << slice.slice;
  EXPECT_GE(seconds(reports.at(0).compute), 8 / samples_per_second);
  EXPECT_EQ(held(*computation->out), by_hand(computation->order, linear_start()));
}

TEST_F(StepExecutorTest, LayerTimingStallsForLateParameters) {
  constexpr double late_s = 0.03;
  make({}, a_device(400), {{0, 0.1, 0.2, 0}, {1, 0.8, 0.6, 1}});
  const auto computation = begin(0);
  for (const std::uint32_t s : {0U, 1U, 3U}) deliver_slice(*computation, s);
  while (seconds(clock.now() - computation->began) < late_s) std::this_thread::yield();
  deliver_slice(*computation, 2);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  EXPECT_GE(seconds(reports.at(0).stalled), late_s - 0.2 * 8 / 400) << "it reads that slice after a fifth of the step";
  EXPECT_GE(seconds(clock.now() - computation->began), seconds(reports.at(0).stalled) + 8.0 / 400)
      << "the rest of the step is delayed by the stall";
}

TEST_F(StepExecutorTest, AReportedStallReplacesTheWaitingTime) {
  constexpr double late_s = 0.03;
  for (const std::optional<Duration> recorded : {std::optional<Duration>(), std::optional(Duration{0})}) {
    std::promise<void> first_block;
    make({.needed =
              [&](std::uint64_t block, bool) {
                if (block == 0) first_block.set_value();
              },
          .stalled = recorded});
    const auto computation = begin(0);
    for (const std::uint32_t s : {0U, 1U, 3U}) deliver_slice(*computation, s);
    first_block.get_future().wait();
    const Instant since = clock.now();
    while (seconds(clock.now() - since) < late_s) std::this_thread::yield();
    deliver_slice(*computation, 2);
    ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
    if (recorded) {
      EXPECT_EQ(reports.back().stalled, Duration{0});
      EXPECT_GE(seconds(reports.back().compute), late_s / 2);
    } else {
      EXPECT_GE(seconds(reports.back().stalled), late_s / 2);
    }
    steps.clear();
  }
}

TEST_F(StepExecutorTest, PredictsSamplesFromTheLastTwoLeases) {
  std::vector<std::vector<std::uint32_t>> computed, likely_next_samples;
  make({.turning = [&](std::span<const std::uint32_t> now, StepIo& step_io) {
    computed.emplace_back(now.begin(), now.end());
    const auto next = step_io.likely_next_samples();
    likely_next_samples.emplace_back(next.begin(), next.end());
  }});
  for (std::uint64_t step = 0; step < 4; ++step) {
    deliver_all(*begin(step));
    ASSERT_TRUE(run_until(io, [&] { return steps.size() == step + 1; }));
  }
  EXPECT_TRUE(likely_next_samples[0].empty()) << "one lease gives no prediction";
  EXPECT_EQ(likely_next_samples[1], computed[2]);
  EXPECT_EQ(likely_next_samples[2], computed[3]);
}

/// Records what a device is told about the next step during a step.
struct Prefetching {
  std::vector<std::uint64_t> ids;          // of the computations
  std::vector<std::uint64_t> next_step;    // of the next computation; 0: none
  std::vector<std::uint32_t> samples;      // of the last prefetched step
  std::vector<float> values;               // of the same
  std::function<void()> prefetch = [] {};  // on the thread of the computation
  LinearTurns turns() {
    return {.turning = [this](std::span<const std::uint32_t>, StepIo& io) {
      prefetch();
      ids.push_back(io.id());
      const std::optional<NextStep> next = io.next_step();
      next_step.push_back(next ? next->id : 0);
      if (!next) return;
      samples.assign(next->samples.begin(), next->samples.end());
      ASSERT_TRUE(next->io->wait_for(0, linear_values));
      next->io->take(0, linear_values, [&](const IncomingValues& came) {
        for (std::uint64_t i = 0; i < came.count; ++i) values.push_back(reinterpret_cast<const float*>(came.bytes.data())[i]);
      });
    }};
  }
};

TEST_F(StepExecutorTest, APrefetchedStepCanBeginEarlyAndHasItsId) {
  Prefetching device;
  make(device.turns(), std::nullopt, {}, 4);
  const auto next = std::make_shared<IncomingParameters>(layout, make_buffer(layout.values));
  const std::vector<float> start = linear_start();
  std::copy(start.begin(), start.end(), next->buffer().floats().begin());
  for (std::uint32_t s = 0; s < layout.slices.size(); ++s) next->arrived(SliceId{s});
  device.prefetch = [&] { step_executor->prefetch(order_of(1), next); };
  deliver_all(*begin(0));
  ASSERT_TRUE(run_until(io, [&] { return steps.size() == 1; }));
  device.prefetch = [] {};
  deliver_all(*begin(1));
  ASSERT_TRUE(run_until(io, [&] { return steps.size() == 2; }));
  EXPECT_EQ(device.next_step, (std::vector<std::uint64_t>{device.ids[1], 0}));
  EXPECT_NE(device.ids[0], device.ids[1]);
  EXPECT_EQ(device.values, start);
  store::Epochs epochs(epoch_samples, seed);
  EXPECT_EQ(device.samples, epochs.samples_of(order_of(1).lease));
}

TEST_F(StepExecutorTest, NoStepWithALimitOrANewSizeBeginsEarly) {
  for (const bool limited : {false, true}) {
    Prefetching device;
    make(device.turns(), std::nullopt, {}, 4, /*new_sizes_are_slow=*/!limited);
    wire::Order order = order_of(1);
    if (limited) order.limit = from_seconds(1);
    if (!limited) order.lease = {{Range{0, 8, 12}}};
    device.prefetch = [&] { step_executor->prefetch(order, std::make_shared<IncomingParameters>(layout, make_buffer(layout.values))); };
    deliver_all(*begin(0));
    ASSERT_TRUE(run_until(io, [&] { return steps.size() == 1; }));
    EXPECT_EQ(device.next_step, std::vector<std::uint64_t>{0}) << limited;
    steps.clear();
  }
}

TEST_F(StepExecutorTest, ABatchMultipleTakesWhatFitsInOneBatch) {
  make({}, std::nullopt, {}, 4);
  const Duration no_time{1};
  for (std::uint64_t step = 0; step < 4; ++step) {
    deliver_all(*begin(step, step == 3 ? from_seconds(1e6) : no_time));
    run_until(io, [&] { return steps.size() == step + 1; });
  }
  EXPECT_EQ(reports[0].samples, 8U) << "the time per sample is not known yet";
  EXPECT_EQ(reports[1].samples, 4U) << "at least one multiple";
  EXPECT_EQ(reports[2].samples, 4U);
  EXPECT_EQ(reports[3].samples, 8U) << "all of them fit";
}

TEST_F(StepExecutorTest, ReportsTheFirstStepOfEachSize) {
  make({}, std::nullopt, {}, 4, /*new_sizes_are_slow=*/true);
  std::optional<cluster::Affine> batcher;
  step_executor->warm_up([&](const auto& measured) { batcher = measured; });
  run_until(io, [&] { return batcher.has_value(); });
  EXPECT_GT(batcher->per_sample, 0) << "measured at the usual size and half of it, which are known now";
  EXPECT_GE(batcher->fixed, 0);
  for (std::uint64_t step = 0; step < 5; ++step) {
    deliver_all(*begin(step, step < 3 ? Duration{} : Duration{1}));
    run_until(io, [&] { return steps.size() == step + 1; });
  }
  std::vector<std::pair<std::uint64_t, bool>> sizes;
  for (std::size_t i = 0; i < reports.size(); ++i) sizes.emplace_back(reports[i].samples, reports[i].new_batch_size);
  EXPECT_EQ(sizes, (std::vector<std::pair<std::uint64_t, bool>>{{8, true}, {8, false}, {8, false}, {4, true}, {4, false}}));
}

TEST_F(StepExecutorTest, ADeviceWithoutWarmUpReportsNoSpeed) {
  bool recorded = false;
  make({}, std::nullopt, {}, 0, false, /*usual=*/0);
  step_executor->warm_up([&](const auto& batcher) {
    recorded = true;
    EXPECT_FALSE(batcher.has_value());
  });
  run_until(io, [&] { return recorded; });
  EXPECT_TRUE(recorded);
}

}  // namespace
}  // namespace motley::runtime
