// Batch sizes, bits and finish times over a run, and bounded memory.
#include "trace/run_history.h"

#include <gtest/gtest.h>

#include "trace/events_for_tests.h"

namespace motley::trace {
namespace {

void tell_step(RunHistory& history, double from, std::uint32_t worker, std::uint64_t step, double ended) {
  history.on_event({at_seconds(from), Released{.worker = {worker}, .step = {step}, .push_bits = 4, .pull_bits = 8}});
  history.on_event(at<ComputeEnded>(ended, worker, step));
  history.on_event({at_seconds(ended + 0.5), Contributed{.worker = {worker}, .step = {step}, .samples = 30 + worker}});
}

TEST(RunHistory, HasSamplesBitsAndSpreadOfEachUpdate) {
  RunHistory history;
  for (const std::uint32_t worker : {0U, 1U}) history.on_event(at<Joined>(0, worker));
  tell_step(history, 1, 0, 0, 3);
  tell_step(history, 1, 1, 0, 3.25);
  history.on_event(at<Counted>(4, 0, 0));
  history.on_event(at<Counted>(4, 1, 0));
  history.on_event(at<Applied>(4));
  const auto workers = history.workers();
  ASSERT_EQ(workers.size(), 2U);
  ASSERT_EQ(workers[1].shares.size(), 1U);
  EXPECT_EQ(workers[1].shares[0].samples, 31U);
  EXPECT_EQ(workers[1].shares[0].push_bits, 4);
  EXPECT_EQ(workers[1].shares[0].pull_bits, 8);
  ASSERT_EQ(history.finishes().size(), 1U);
  EXPECT_DOUBLE_EQ(history.finishes()[0].spread_s, 0.25);
}

TEST(RunHistory, AnUpdateOfOnePartHasNoSpread) {
  RunHistory history;
  history.on_event(at<Joined>(0));
  tell_step(history, 1, 0, 0, 3);
  history.on_event(at<Counted>(4, 0, 0));
  history.on_event(at<Applied>(4));
  EXPECT_TRUE(history.finishes().empty());
}

TEST(Downsampled, KeepsTheFirstAndEveryNthOfTheRest) {
  Downsampled<int> downsampled;
  for (int i = 0; i < 100'000; ++i) downsampled.add(i);
  const auto& kept = downsampled.values();
  EXPECT_LT(kept.size(), 512U);
  EXPECT_GE(kept.size(), 256U);
  EXPECT_EQ(kept.front(), 0);
  for (std::size_t i = 2; i < kept.size(); ++i) EXPECT_EQ(kept[i] - kept[i - 1], kept[1] - kept[0]);
}

}  // namespace
}  // namespace motley::trace
