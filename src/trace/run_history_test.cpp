// The course of a run: what was given when and in how many bits, and that it stays small however long the run is.
#include "trace/run_history.h"

#include <gtest/gtest.h>

namespace motley::trace {
namespace {

Event at(double seconds, Kind kind, std::uint32_t worker = 0, std::uint64_t step = 0) {
  Event event;
  event.at = at_seconds(seconds);
  event.kind = kind;
  event.worker = {worker};
  event.step = {step};
  return event;
}

void tell_step(RunHistory& history, double from, std::uint32_t worker, std::uint64_t step, double ended) {
  Event released = at(from, Kind::released, worker, step);
  released.value = 4;
  released.second = 8;
  history.on_event(released);
  history.on_event(at(ended, Kind::compute_ended, worker, step));
  Event contributed = at(ended + 0.5, Kind::contributed, worker, step);
  contributed.first = 30 + worker;
  history.on_event(contributed);
}

TEST(RunHistory, TellsWhatEachWorkerDidInHowManyBitsAndHowFarApartTheyFinished) {
  RunHistory history;
  for (const std::uint32_t worker : {0U, 1U}) history.on_event(at(0, Kind::joined, worker));
  tell_step(history, 1, 0, 0, 3);
  tell_step(history, 1, 1, 0, 3.25);
  history.on_event(at(4, Kind::counted, 0, 0));
  history.on_event(at(4, Kind::counted, 1, 0));
  history.on_event(at(4, Kind::applied));
  const auto workers = history.workers();
  ASSERT_EQ(workers.size(), 2U);
  ASSERT_EQ(workers[1].shares.size(), 1U);
  EXPECT_EQ(workers[1].shares[0].samples, 31U);
  EXPECT_EQ(workers[1].shares[0].push_bits, 4);
  EXPECT_EQ(workers[1].shares[0].pull_bits, 8);
  ASSERT_EQ(history.finishes().size(), 1U);
  EXPECT_DOUBLE_EQ(history.finishes()[0].spread_s, 0.25);
}

TEST(RunHistory, OfAnUpdateOfOnePartThereIsNoSpread) {
  RunHistory history;
  history.on_event(at(0, Kind::joined));
  tell_step(history, 1, 0, 0, 3);
  history.on_event(at(4, Kind::counted, 0, 0));
  history.on_event(at(4, Kind::applied));
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
