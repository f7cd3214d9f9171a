// Devices on a desk: emulated ones, those that go by a grain, and what each says of its time.
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <thread>

#include "run/desk_for_tests.h"

namespace motley::run {
namespace {

TEST_F(DeskTest, AnEmulatedDeviceHasEverythingAtItsEnd) {
  make({}, a_device(1e9));
  const auto computation = begin(0);
  lay_all(*computation);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  EXPECT_TRUE(slices.empty());
  EXPECT_EQ(held(*computation->out), by_hand(computation->order, linear_start()));
}

TEST_F(DeskTest, AnEmulatedDeviceWithACadenceLetsSlicesGoWhenTheirTimeHasCome) {
  constexpr double samples_per_second = 40;  // 8 samples: 0.2 s
  const store::Cadence cadence{{0, 0.1, 0.2, 0}, {1, 0.8, 0.6, 1}};
  make({}, a_device(samples_per_second), cadence);
  const auto computation = begin(0);
  lay_all(*computation);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  std::vector<std::uint32_t> order;
  for (const Slice& slice : slices) order.push_back(slice.slice);
  EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), layout.slices.size());
  EXPECT_LT(std::find(order.begin(), order.end(), 2U), std::find(order.begin(), order.end(), 0U));
  for (const Slice& slice : slices) EXPECT_GE(slice.at_s, cadence.made[slice.slice] * 8 / samples_per_second) << "slice " << slice.slice;
  EXPECT_GE(seconds(times.at(0)), 8 / samples_per_second);
  EXPECT_EQ(held(*computation->out), by_hand(computation->order, linear_start()));
}

TEST_F(DeskTest, AnEmulatedDeviceWithACadenceStandsStillForWhatComesLate) {
  constexpr double late_s = 0.03;
  make({}, a_device(400), {{0, 0.1, 0.2, 0}, {1, 0.8, 0.6, 1}});
  const auto computation = begin(0);
  for (const std::uint32_t s : {0U, 1U, 3U}) lay(*computation, s);
  while (seconds(clock.now() - computation->began) < late_s) std::this_thread::yield();
  lay(*computation, 2);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  EXPECT_GE(seconds(stood.at(0)), late_s - 0.2 * 8 / 400) << "it reads that slice after a fifth";
  EXPECT_GE(seconds(clock.now() - computation->began), seconds(stood.at(0)) + 8.0 / 400) << "the rest comes so much later";
}

TEST_F(DeskTest, ADeviceThatHadWorkLeftWhileValuesCameHasComputedAllTheTime) {
  constexpr double late_s = 0.03;
  for (const std::optional<Duration> told : {std::optional<Duration>(), std::optional(Duration{0})}) {
    std::promise<void> first_block;
    make({.needed =
              [&](std::uint64_t block, bool) {
                if (block == 0) first_block.set_value();
              },
          .stood = told});
    const auto computation = begin(0);
    for (const std::uint32_t s : {0U, 1U, 3U}) lay(*computation, s);
    first_block.get_future().wait();
    const Instant since = clock.now();
    while (seconds(clock.now() - since) < late_s) std::this_thread::yield();
    lay(*computation, 2);
    ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
    if (told) {
      EXPECT_EQ(stood.back(), Duration{0});
      EXPECT_GE(seconds(times.back()), late_s / 2);
    } else {
      EXPECT_GE(seconds(stood.back()), late_s / 2);
    }
    steps.clear();
  }
}

TEST_F(DeskTest, WhatADeviceWillComputeNextIsForeseenFromItsLastTwoLeases) {
  std::vector<std::vector<std::uint32_t>> computed, foreseen;
  make({.turning = [&](std::span<const std::uint32_t> now, Flow& flow) {
    computed.emplace_back(now.begin(), now.end());
    const auto next = flow.foreseen();
    foreseen.emplace_back(next.begin(), next.end());
  }});
  for (std::uint64_t step = 0; step < 4; ++step) {
    lay_all(*begin(step));
    ASSERT_TRUE(run_until(io, [&] { return steps.size() == step + 1; }));
  }
  EXPECT_TRUE(foreseen[0].empty()) << "one lease tells nothing";
  EXPECT_EQ(foreseen[1], computed[2]);
  EXPECT_EQ(foreseen[2], computed[3]);
}

/// A step of a device that is told of the next one in the middle of it; what it then hears.
struct Foretelling {
  std::vector<std::uint64_t> ids;          // of the computations
  std::vector<std::uint64_t> upcoming;     // likewise; 0: nothing
  std::vector<std::uint32_t> samples;      // of the last that was upcoming
  std::vector<float> values;               // likewise
  std::function<void()> foretell = [] {};  // on the thread of the computation
  LinearTurns turns() {
    return {.turning = [this](std::span<const std::uint32_t>, Flow& flow) {
      foretell();
      ids.push_back(flow.id());
      const std::optional<Upcoming> next = flow.upcoming();
      upcoming.push_back(next ? next->id : 0);
      if (!next) return;
      samples.assign(next->samples.begin(), next->samples.end());
      ASSERT_TRUE(next->flow->need(0, linear_values));
      next->flow->take(0, linear_values, [&](const Arriving& came) {
        for (std::uint64_t i = 0; i < came.count; ++i) values.push_back(reinterpret_cast<const float*>(came.bytes.data())[i]);
      });
    }};
  }
};

TEST_F(DeskTest, WhatIsForetoldCanBeBegunAndIsToldApartByItsNumber) {
  Foretelling device;
  make(device.turns(), std::nullopt, {}, 4);
  const auto next = std::make_shared<Arrival>(layout, make_buffer(layout.values));
  const std::vector<float> start = linear_start();
  std::copy(start.begin(), start.end(), next->buffer().floats().begin());
  for (std::uint32_t s = 0; s < layout.slices.size(); ++s) next->arrived(SliceId{s});
  device.foretell = [&] { desk->foretell(order_of(1), next); };
  lay_all(*begin(0));
  ASSERT_TRUE(run_until(io, [&] { return steps.size() == 1; }));
  device.foretell = [] {};
  lay_all(*begin(1));
  ASSERT_TRUE(run_until(io, [&] { return steps.size() == 2; }));
  EXPECT_EQ(device.upcoming, (std::vector<std::uint64_t>{device.ids[1], 0}));
  EXPECT_NE(device.ids[0], device.ids[1]);
  EXPECT_EQ(device.values, start);
  store::Epochs epochs(epoch_samples, seed);
  EXPECT_EQ(device.samples, epochs.samples_of(order_of(1).lease));
}

TEST_F(DeskTest, NothingIsBegunThatTimeMayCutOrWhoseSizeIsNew) {
  for (const bool limited : {false, true}) {
    Foretelling device;
    make(device.turns(), std::nullopt, {}, 4, /*meets_sizes=*/!limited);
    wire::Order order = order_of(1);
    if (limited) order.limit = from_seconds(1);
    if (!limited) order.lease = {{Range{0, 8, 12}}};
    device.foretell = [&] { desk->foretell(order, std::make_shared<Arrival>(layout, make_buffer(layout.values))); };
    lay_all(*begin(0));
    ASSERT_TRUE(run_until(io, [&] { return steps.size() == 1; }));
    EXPECT_EQ(device.upcoming, std::vector<std::uint64_t>{0}) << limited;
    steps.clear();
  }
}

TEST_F(DeskTest, ADeviceWithAGrainDoesInOnePieceWhatItHasTimeFor) {
  make({}, std::nullopt, {}, 4);
  const Duration no_time{1};
  for (std::uint64_t step = 0; step < 4; ++step) {
    lay_all(*begin(step, step == 3 ? from_seconds(1e6) : no_time));
    run_until(io, [&] { return steps.size() == step + 1; });
  }
  EXPECT_EQ(worths[0].samples, 8U) << "it does not know yet how long a sample takes";
  EXPECT_EQ(worths[1].samples, 4U) << "a grain at least";
  EXPECT_EQ(worths[2].samples, 4U);
  EXPECT_EQ(worths[3].samples, 8U) << "there is time for all of them";
}

TEST_F(DeskTest, TheFirstStepOfEachSizeIsNamed) {
  make({}, std::nullopt, {}, 4, /*meets_sizes=*/true);
  std::optional<cluster::Affine> pace;
  desk->warm_up([&](const auto& measured) { pace = measured; });
  run_until(io, [&] { return pace.has_value(); });
  EXPECT_GT(pace->per_sample, 0) << "of the usual size and half of it, which are known from now on";
  EXPECT_GE(pace->fixed, 0);
  for (std::uint64_t step = 0; step < 5; ++step) {
    lay_all(*begin(step, step < 3 ? Duration{} : Duration{1}));
    run_until(io, [&] { return steps.size() == step + 1; });
  }
  std::vector<std::pair<std::uint64_t, bool>> sizes;
  for (std::size_t i = 0; i < worths.size(); ++i) sizes.emplace_back(worths[i].samples, first_of_size[i]);
  EXPECT_EQ(sizes, (std::vector<std::pair<std::uint64_t, bool>>{{8, true}, {8, false}, {8, false}, {4, true}, {4, false}}));
}

TEST_F(DeskTest, ADeviceThatNeedsNoWarmingUpTellsNoSpeed) {
  bool told = false;
  make({}, std::nullopt, {}, 0, false, /*usual=*/0);
  desk->warm_up([&](const auto& pace) {
    told = true;
    EXPECT_FALSE(pace.has_value());
  });
  run_until(io, [&] { return told; });
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace motley::run
