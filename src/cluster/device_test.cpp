// A device: its time is affine in the samples; faults and slowdowns stretch exactly what falls into them.
#include "cluster/device.h"

#include <gtest/gtest.h>

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

TEST(Device, ASlowSpellStretchesOnlyWhatFallsIntoIt) {
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

TEST(Device, SpellsThatOverlapMultiply) {
  Spec spec = plain();
  spec.faults = {fault(FaultKind::slow, 0, 10, 2), fault(FaultKind::slow, 0, 10, 3)};
  Device device(spec, NodeId{0}, 7);
  EXPECT_DOUBLE_EQ(finish_s(device, 0, 99), 6.0);
}

TEST(Device, NothingMovesDuringAPause) {
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

TEST(Device, OneDevicesLuckNeverMovesAnothers) {
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

}  // namespace
}  // namespace motley::cluster
