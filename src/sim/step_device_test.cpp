#include "sim/step_device.h"

#include <gtest/gtest.h>

namespace motley::sim {
namespace {

constexpr std::uint64_t samples = 100;  // one second

cluster::Spec one_node() {
  cluster::Spec spec;
  spec.nodes.resize(1);
  spec.nodes[0].samples_per_second = 100;
  spec.nodes[0].jitter = 0;
  return spec;
}

wire::Order order(std::uint64_t step, std::uint32_t local_steps = 1) {
  wire::Order made;
  made.step = made.parameters = {step};
  made.local_steps = local_steps;
  made.lease.ranges = {{0, 0, samples}};
  return made;
}

wire::Pulled slice(std::uint64_t step, std::uint32_t id) {
  wire::Pulled made;
  made.step = {step};
  made.slice = {id};
  return made;
}

class StepDevices : public testing::Test {
 protected:
  const cluster::Spec cluster_ = one_node();
  const LayerSequence sequence_{{{0, 0.5}, {1, 0.8}}};
  StepDevice whole_{cluster_, NodeId{0}, 0, 2, nullptr};
  StepDevice streamed_{cluster_, NodeId{0}, 0, 2, &sequence_};
};

TEST_F(StepDevices, AStepEndsAfterItsComputeTime) {
  const StepDevice::Due due = whole_.begin(at_seconds(3), order(0));
  EXPECT_TRUE(due.ends);
  EXPECT_GE(due.when, at_seconds(4));
  EXPECT_TRUE(whole_.computes(whole_.serial()));
  const StepDevice::FinishedStep done = whole_.end(due.when);
  EXPECT_EQ(done.order.lease.size(), samples);
  EXPECT_EQ(done.compute, due.when - at_seconds(3));
  EXPECT_FALSE(whole_.computes(whole_.serial()));
}

TEST_F(StepDevices, AnAbandonedStepIsNotMistakenForTheNext) {
  whole_.begin(at_seconds(0), order(0));
  const std::uint32_t first = whole_.serial();
  whole_.abandon();
  EXPECT_FALSE(whole_.computes(first));
  whole_.begin(at_seconds(0.5), order(1));
  EXPECT_FALSE(whole_.computes(first));
}

TEST_F(StepDevices, AStreamedStepStallsUntilItsSliceArrives) {
  streamed_.slice_arrived(at_seconds(0), slice(0, 0));
  const StepDevice::Due begun = streamed_.begin(at_seconds(0), order(0));
  EXPECT_FALSE(begun.ends);
  std::vector<SliceId> gradients;
  const auto half = streamed_.advance(at_seconds(0), gradients);
  ASSERT_TRUE(half.has_value());
  EXPECT_FALSE(streamed_.advance(half->when, gradients).has_value());
  EXPECT_TRUE(streamed_.is_stalled());
  const Instant arrived = half->when + from_seconds(2);
  streamed_.slice_arrived(arrived, slice(0, 1));
  auto due = streamed_.advance(arrived, gradients);
  EXPECT_FALSE(streamed_.is_stalled());
  while (due && !due->ends) due = streamed_.advance(due->when, gradients);
  ASSERT_TRUE(due.has_value());
  EXPECT_EQ(gradients, (std::vector<SliceId>{{1}, {0}}));
  const StepDevice::FinishedStep done = streamed_.end(due->when);
  EXPECT_EQ(done.stalled, from_seconds(2));
  EXPECT_EQ(done.compute + done.stalled, due->when - at_seconds(0));
}

TEST_F(StepDevices, LocalStepsTakeANewerSliceInAtTheNextBoundary) {
  const StepDevice::Due due = whole_.begin(at_seconds(0), order(3, 4));
  const Duration quarter = (due.when - at_seconds(0)) / 4;
  whole_.slice_arrived(at_seconds(0) + quarter + quarter / 2, slice(4, 1));
  whole_.slice_arrived(at_seconds(0) + quarter, slice(3, 0));                    // of this step: no newer parameters
  whole_.slice_arrived(at_seconds(0) + 3 * quarter + quarter / 2, slice(4, 0));  // in the last local step: too late
  const StepDevice::FinishedStep done = whole_.end(due.when);
  ASSERT_EQ(done.arrived_slices.size(), 1U);
  EXPECT_EQ(done.arrived_slices[0].slice, SliceId{1});
  EXPECT_EQ(done.arrived_slices[0].after, 2U);
}

}  // namespace
}  // namespace motley::sim
