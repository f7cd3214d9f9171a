#include "runtime/step_executor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "runtime/step_executor_for_tests.h"

namespace motley::runtime {
namespace {

/// Spins until this thread of the process sleeps, as /proc shows.
void await_asleep(pid_t thread) {
  for (std::string state; state != "S"; std::this_thread::yield()) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string line;
    std::getline(file, line);
    state = line.substr(line.rfind(')') + 2, 1);  // after the name
  }
}

TEST_F(StepExecutorTest, ComputesWithSlicesInAnyOrder) {
  make();
  std::vector<std::uint32_t> order(layout.slices.size());
  std::iota(order.begin(), order.end(), 0);
  std::uint64_t step = 0;
  do {
    const auto computation = begin(step);
    for (const std::uint32_t s : order) deliver_slice(*computation, s);
    ASSERT_TRUE(run_until(io, [&] { return steps.size() == step + 1; }));
    EXPECT_EQ(held(*computation->out), by_hand(computation->order, linear_start()));
    EXPECT_TRUE(reports.back().finite);
    EXPECT_GE(reports.back().compute, Duration{0});
    ++step;
  } while (step < 6 && std::next_permutation(order.begin(), order.end()));
  EXPECT_TRUE(failures.empty());
}

TEST_F(StepExecutorTest, BeginsBeforeAllSlicesHaveArrived) {
  std::promise<void> first_block;
  make({.needed = [&](std::uint64_t block, bool there) {
    if (block == 0 && there) first_block.set_value();
  }});
  const auto computation = begin(0);
  deliver_slice(*computation, 0);
  deliver_slice(*computation, 1);  // values 0 to 5; the first block has four
  first_block.get_future().wait();
  deliver_slice(*computation, 3);
  deliver_slice(*computation, 2);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  EXPECT_EQ(held(*computation->out), by_hand(computation->order, linear_start()));
}

TEST_F(StepExecutorTest, ReportsSlicesAsTheyAreReady) {
  std::promise<void> open;
  // In backward order: once values 8 to 11 are ready, so is all of the last slice, which begins at 10.
  make({.gradient_ready = [&](std::uint64_t block) {
    if (block == 2) open.get_future().wait();
  }});
  const auto computation = begin(0);
  deliver_all(*computation);
  ASSERT_TRUE(run_until(io, [&] { return !slices.empty(); }));
  EXPECT_EQ(slices[0].slice, 3U);
  EXPECT_TRUE(steps.empty());
  open.set_value();
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  const std::vector<float> expected = by_hand(computation->order, linear_start());
  std::set<std::uint32_t> recorded;
  for (const Slice& slice : slices) {
    EXPECT_TRUE(recorded.insert(slice.slice).second) << "slice " << slice.slice << " twice";
    const auto from = expected.begin() + static_cast<std::ptrdiff_t>(layout[SliceId{slice.slice}].offset);
    EXPECT_EQ(slice.values, std::vector<float>(from, from + static_cast<std::ptrdiff_t>(slice.values.size())));
  }
  EXPECT_EQ(recorded.size(), layout.slices.size());
}

TEST_F(StepExecutorTest, ANewOrderReplacesOneThatWaitsForValues) {
  make();
  begin(0);  // its values never arrive
  const auto second = begin(1);
  deliver_all(*second);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  EXPECT_EQ(steps, std::vector<std::uint64_t>{1});
  for (const Slice& slice : slices) EXPECT_EQ(slice.step, 1U);
}

TEST_F(StepExecutorTest, AbandonedWhileWaitingItReportsNothing) {
  std::promise<pid_t> begun;
  std::promise<bool> there;
  make({.before = [&] { begun.set_value(gettid()); }, .needed = [&](std::uint64_t, bool got) { there.set_value(got); }});
  begin(0);
  await_asleep(begun.get_future().get());
  step_executor->abandon();
  EXPECT_FALSE(there.get_future().get());
  step_executor.reset();
  run_ready(io);
  EXPECT_TRUE(steps.empty() && slices.empty() && failures.empty());
}

TEST_F(StepExecutorTest, AbandonedBeforeItBeginsItNeverRuns) {
  Gate gate;
  gate.close();
  int begun = 0;
  make({.before = [&] {
    ++begun;
    gate.pass();
  }});
  begin(0);
  begin(1);  // after it on the executor's thread
  step_executor->abandon();
  gate.open();
  step_executor.reset();
  EXPECT_LE(begun, 1);
  run_ready(io);
  EXPECT_TRUE(steps.empty() && failures.empty());
}

TEST_F(StepExecutorTest, AbandonedOnASlowDeviceItEndsAtOnce) {
  std::promise<pid_t> done;
  make({.after = [&] { done.set_value(gettid()); }}, a_device(1e-6));  // eight samples take three months
  const auto computation = begin(0);
  deliver_all(*computation);
  await_asleep(done.get_future().get());
  step_executor->abandon();
  step_executor.reset();  // waits for its thread
  run_ready(io);
  EXPECT_TRUE(steps.empty() && failures.empty());
}

TEST_F(StepExecutorTest, DestroyedOnASlowDeviceItEndsAtOnce) {
  std::promise<pid_t> done;
  make({.after = [&] { done.set_value(gettid()); }}, a_device(1e-6));
  const auto computation = begin(0);
  deliver_all(*computation);
  await_asleep(done.get_future().get());
  step_executor.reset();
  run_ready(io);
  EXPECT_TRUE(steps.empty());
}

TEST_F(StepExecutorTest, ResultsInFlightAreDroppedWhenAbandoned) {
  std::promise<pid_t> done;
  make({.after = [&] { done.set_value(gettid()); }});
  const auto computation = begin(0);
  deliver_all(*computation);
  await_asleep(done.get_future().get());  // slices and the end wait for the event loop
  step_executor->abandon();
  run_ready(io);
  EXPECT_TRUE(steps.empty() && slices.empty());
}

TEST_F(StepExecutorTest, ReportsAFailureOfTheSource) {
  make({.before = [] { throw std::runtime_error("no memory"); }});
  begin(0);
  ASSERT_TRUE(run_until(io, [&] { return !failures.empty(); }));
  EXPECT_EQ(failures, std::vector<std::string>{"no memory"});
  EXPECT_TRUE(steps.empty());
}

TEST_F(StepExecutorTest, DoesNotReportAFailureOfAnAbandonedStep) {
  std::promise<void> begun, open;
  int runs = 0;
  make({.before = [&] {
    if (++runs > 1) return;
    begun.set_value();
    open.get_future().wait();
    throw std::runtime_error("no memory");
  }});
  begin(0);
  begun.get_future().wait();
  const auto second = begin(1);  // instead
  open.set_value();
  deliver_all(*second);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));  // the first one has ended before
  EXPECT_TRUE(failures.empty());
}

TEST(IncomingParameters, KnowsWhichSlicesARangeOverlaps) {
  const store::Layout layout = linear_layout();  // [0,3) [3,6) [6,10) [10,13)
  IncomingParameters incoming(layout, make_buffer(layout.values));
  incoming.arrived(SliceId{1});
  EXPECT_TRUE(incoming.await(3, 6));
  EXPECT_TRUE(incoming.await(4, 5));
  EXPECT_TRUE(incoming.await(5, 5));
  incoming.arrived(SliceId{0});
  EXPECT_TRUE(incoming.await(0, 4));
  incoming.cancel();
  EXPECT_FALSE(incoming.await(0, 13));  // not complete, and cancelled
  EXPECT_FALSE(incoming.await(0, 3));
}

}  // namespace
}  // namespace motley::runtime
