// A device: its time is affine in the samples; faults and slowdowns stretch exactly what falls into them.
#include "cluster/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace motley::cluster {
namespace {

/// 100 samples a second, 10 ms a step.
Spec plain() {
  Spec spec;
  Node node;
  node.samples_per_second = 100;
  node.overhead = from_seconds(0.01);
  spec.nodes = {node, node};
  return spec;
}

Fault fault(FaultKind kind, double at_s, double lasting_s, double factor = 1) {
  return {at_seconds(at_s), kind, NodeId{0}, from_seconds(lasting_s), factor};
}

double finish_s(Device& device, double start_s, std::uint64_t samples, std::uint32_t steps = 1) {
  return seconds(device.finish(at_seconds(start_s), samples, steps));
}

TEST(Device, TakesItsOverheadPerStepAndItsTimePerSample) {
  Device device(plain(), NodeId{0}, 7);
  EXPECT_EQ(device.finish(at_seconds(5), 20, 1), at_seconds(5.21));
  EXPECT_EQ(device.finish(at_seconds(6), 20, 4), at_seconds(6.24));
}

TEST(Device, ASlowPeriodStretchesOnlyItsOwnTime) {
  Spec spec = plain();
  spec.faults = {fault(FaultKind::slow, 1.0, 1.0, 4)};
  Device device(spec, NodeId{0}, 7);
  EXPECT_DOUBLE_EQ(finish_s(device, 0.0, 29), 0.3);         // before it
  EXPECT_DOUBLE_EQ(finish_s(device, 0.9, 29), 1.0 + 0.8);   // 0.1 s before it, 0.2 s of work in it
  EXPECT_DOUBLE_EQ(finish_s(device, 1.8, 29), 2.0 + 0.25);  // 0.05 s of work in it
  EXPECT_DOUBLE_EQ(finish_s(device, 2.5, 29), 2.8);         // after it
  Device other(spec, NodeId{1}, 7);
  EXPECT_DOUBLE_EQ(finish_s(other, 0.9, 29), 1.2);
}

TEST(Device, OverlappingSlowPeriodsMultiply) {
  Spec spec = plain();
  spec.faults = {fault(FaultKind::slow, 0, 10, 2), fault(FaultKind::slow, 0, 10, 3)};
  Device device(spec, NodeId{0}, 7);
  EXPECT_DOUBLE_EQ(finish_s(device, 0, 99), 6.0);
}

TEST(Device, TheDeviceStandsStillDuringAPause) {
  Spec spec = plain();
  spec.faults = {fault(FaultKind::pause, 1.0, 0.5), fault(FaultKind::pause, 1.2, 2.0)};
  Device device(spec, NodeId{0}, 7);
  EXPECT_DOUBLE_EQ(finish_s(device, 0.9, 29), 3.2 + 0.2);
}

TEST(Device, RandomSlowdownsSlowItDownByTheShareOfTimeTheyLast) {
  Spec spec = plain();
  spec.nodes[0].slowdowns = Slowdowns{4, from_seconds(1), from_seconds(3)};  // a quarter of the time at a quarter of the speed
  Device device(spec, NodeId{0}, 7);
  Instant now{};
  constexpr int steps = 200'000;
  for (int i = 0; i < steps; ++i) now = device.finish(now, 9, 1);
  const double work_s = steps * 0.1;
  EXPECT_NEAR(seconds(now) / work_s, 1 / (0.75 + 0.25 / 4), 0.02);
}

TEST(Device, JitterHasMeanOneAndItsDeviation) {
  Spec spec = plain();
  spec.nodes[0].jitter = 0.1;
  Device device(spec, NodeId{0}, 7);
  constexpr int steps = 100'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < steps; ++i) {
    const double factor = finish_s(device, 0, 99);  // one second undisturbed
    sum += factor;
    squares += factor * factor;
  }
  const double mean = sum / steps;
  EXPECT_NEAR(mean, 1, 0.002);
  EXPECT_NEAR(std::sqrt(squares / steps - mean * mean), 0.1, 0.002);
}

TEST(Device, RandomStreamsOfDevicesAreIndependent) {
  Spec spec = plain();
  spec.nodes[0].jitter = spec.nodes[1].jitter = 0.2;
  Device alone(spec, NodeId{1}, 7);
  Device busy_neighbour(spec, NodeId{0}, 7);
  Device beside(spec, NodeId{1}, 7);
  for (int i = 0; i < 10; ++i) {
    (void)finish_s(busy_neighbour, i, 10);
    EXPECT_EQ(finish_s(alone, i, 10), finish_s(beside, i, 10));
  }
  EXPECT_NE(finish_s(busy_neighbour, 10, 10), finish_s(beside, 10, 10));
}

// Work with a limit: t(b) = 10 ms + b * 10 ms ----------------------------------------------------------------------------------------

/// 40 samples from 5 s on, a look at the clock after every 4.
Device::StepOutcome forty(Device& device, double limit_s, std::uint32_t micro = 4) {
  return device.work(at_seconds(5), 40, 1, from_seconds(limit_s), micro);
}

/// Jitter, random slowdowns, a slow period and a pause.
Spec unruly() {
  Spec spec = plain();
  spec.nodes[0].jitter = 0.2;
  spec.nodes[0].slowdowns = Slowdowns{4, from_seconds(1), from_seconds(3)};
  spec.faults = {fault(FaultKind::slow, 2, 3, 3), fault(FaultKind::pause, 9, 1)};
  return spec;
}

TEST(DeviceWork, WithoutALimitIsTheWholeStep) {
  Device limitless(unruly(), NodeId{0}, 7);
  Device plainly(unruly(), NodeId{0}, 7);
  Instant now{};
  for (std::uint64_t samples = 1; samples < 100; ++samples) {
    const Device::StepOutcome outcome = limitless.work(now, samples, 1, Duration{0}, 4);
    EXPECT_EQ(outcome.samples, samples);
    EXPECT_EQ(outcome.end, plainly.finish(now, samples, 1));
    now = outcome.end;
  }
}

TEST(DeviceWork, StopsAtTheCheckNearestToTheLimit) {
  Device device(plain(), NodeId{0}, 7);
  EXPECT_EQ(forty(device, 0.18).samples, 16U) << "0.17 s is nearer than 0.21 s";
  EXPECT_EQ(forty(device, 0.18).end, at_seconds(5.17));
  EXPECT_EQ(forty(device, 0.2).samples, 20U) << "0.21 s is nearer than 0.17 s";
  EXPECT_EQ(forty(device, 0.2).end, at_seconds(5.21));
  EXPECT_EQ(forty(device, 0.39).samples, 36U) << "halfway it stops";
  EXPECT_EQ(forty(device, 0.41).samples, 40U) << "the limit itself is in time";
  EXPECT_EQ(forty(device, 100).end, at_seconds(5.41)) << "done is done, whatever time is left";
}

TEST(DeviceWork, DoesAtLeastOneCheckAndAtMostAllSamples) {
  Device device(plain(), NodeId{0}, 7);
  EXPECT_EQ(forty(device, 1e-9, 1).samples, 1U);
  EXPECT_EQ(forty(device, 1e-9, 4).samples, 4U);
  EXPECT_EQ(forty(device, 1e-9, 64).samples, 40U) << "the first look would come after it is done";
  EXPECT_EQ(forty(device, 0.405, 16).samples, 40U) << "the last look comes when it is done";
}

TEST(DeviceWork, ASlowPeriodCostsSamplesNotTime) {
  Spec spec = plain();
  spec.faults = {fault(FaultKind::slow, 5.11, 100, 4)};
  Device device(spec, NodeId{0}, 7);
  const Device::StepOutcome outcome = forty(device, 0.31, 1);
  EXPECT_EQ(outcome.samples, 15U) << "10 before it, and a fourth of the 20 that it would have done";
  EXPECT_EQ(outcome.end, at_seconds(5.31));
}

TEST(DeviceWork, JitterCostsSamplesNotTime) {
  Spec spec = plain();
  spec.nodes[0].jitter = 0.1;
  Device device(spec, NodeId{0}, 7);
  Device twin(spec, NodeId{0}, 7);
  for (int step = 0; step < 1000; ++step) {
    const double stretch = seconds(twin.finish(Instant{}, 99, 1));  // one second undisturbed
    const Device::StepOutcome outcome = device.work(Instant{}, 200, 1, from_seconds(1), 1);
    EXPECT_NEAR(seconds(outcome.end), 1, 0.005 * stretch + 1e-8) << "half a sample";
    EXPECT_NEAR(0.01 * static_cast<double>(outcome.samples + 1) * stretch, seconds(outcome.end), 1e-6);
  }
}

TEST(DeviceWork, EqualsTheBestOfAllChecks) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed, "work");
    const Instant start = at_seconds(10 * rng.uniform());
    const std::uint64_t samples = 1 + rng.below(60);
    const auto micro = static_cast<std::uint32_t>(1 + rng.below(9));
    const Duration limit = from_seconds(1e-3 + 1.5 * rng.uniform());
    Device device(unruly(), NodeId{0}, seed);
    const Device::StepOutcome outcome = device.work(start, samples, 1, limit, micro);
    Device::StepOutcome nearest;
    for (std::uint64_t looks = 1; nearest.samples < samples && looks <= samples; ++looks) {
      const std::uint64_t done = std::min(looks * micro, samples);
      const Instant end = Device(unruly(), NodeId{0}, seed).finish(start, done, 1);
      const auto away = [&](Instant moment) { return std::chrono::abs(moment - (start + limit)); };
      if (looks == 1 || away(end) < away(nearest.end)) nearest = {done, end};
      if (done == samples) break;
    }
    EXPECT_EQ(outcome.samples, nearest.samples) << "seed " << seed;
    EXPECT_EQ(outcome.end, nearest.end) << "seed " << seed;
  }
}

TEST(DeviceWork, ALimitDoesNotChangeLaterRandomNumbers) {
  Device limited(unruly(), NodeId{0}, 7);
  Device free(unruly(), NodeId{0}, 7);
  Device again(unruly(), NodeId{0}, 7);
  Rng rng(1, "limits");
  for (int step = 0; step < 200; ++step) {
    const Instant start = at_seconds(3.0 * step);
    const Duration limit = from_seconds(0.5 * rng.uniform());
    const Device::StepOutcome outcome = limited.work(start, 30, 1, limit, 2);
    const Device::StepOutcome same = again.work(start, 30, 1, limit, 2);
    EXPECT_EQ(outcome.samples, same.samples);
    EXPECT_EQ(outcome.end, same.end) << "the same seed, the same answer";
    (void)free.finish(start, 30, 1);
    EXPECT_EQ(limited.finish(at_seconds(3.0 * step + 2.5), 1, 1), free.finish(at_seconds(3.0 * step + 2.5), 1, 1)) << "step " << step;
    (void)again.finish(at_seconds(3.0 * step + 2.5), 1, 1);
  }
}

}  // namespace
}  // namespace motley::cluster
