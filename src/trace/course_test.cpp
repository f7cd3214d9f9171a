// The course of a run: what was given when and in how many bits, and that it stays small however long the run is.
#include "trace/course.h"

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

void tell_step(Course& course, double from, std::uint32_t worker, std::uint64_t step, double ended) {
  Event released = at(from, Kind::released, worker, step);
  released.value = 4;
  released.second = 8;
  course.told(released);
  course.told(at(ended, Kind::compute_ended, worker, step));
  Event contributed = at(ended + 0.5, Kind::contributed, worker, step);
  contributed.first = 30 + worker;
  course.told(contributed);
}

TEST(Course, TellsWhatEachWorkerDidInHowManyBitsAndHowFarApartTheyFinished) {
  Course course;
  for (const std::uint32_t worker : {0U, 1U}) course.told(at(0, Kind::joined, worker));
  tell_step(course, 1, 0, 0, 3);
  tell_step(course, 1, 1, 0, 3.25);
  course.told(at(4, Kind::counted, 0, 0));
  course.told(at(4, Kind::counted, 1, 0));
  course.told(at(4, Kind::applied));
  const auto workers = course.workers();
  ASSERT_EQ(workers.size(), 2U);
  ASSERT_EQ(workers[1].shares.size(), 1U);
  EXPECT_EQ(workers[1].shares[0].samples, 31U);
  EXPECT_EQ(workers[1].shares[0].push_bits, 4);
  EXPECT_EQ(workers[1].shares[0].pull_bits, 8);
  ASSERT_EQ(course.finishes().size(), 1U);
  EXPECT_DOUBLE_EQ(course.finishes()[0].spread_s, 0.25);
}

TEST(Course, OfAnUpdateOfOnePartThereIsNoSpread) {
  Course course;
  course.told(at(0, Kind::joined));
  tell_step(course, 1, 0, 0, 3);
  course.told(at(4, Kind::counted, 0, 0));
  course.told(at(4, Kind::applied));
  EXPECT_TRUE(course.finishes().empty());
}

TEST(Thinned, KeepsTheFirstAndEveryNthOfTheRest) {
  Thinned<int> thinned;
  for (int i = 0; i < 100'000; ++i) thinned.add(i);
  const auto& kept = thinned.values();
  EXPECT_LT(kept.size(), 512U);
  EXPECT_GE(kept.size(), 256U);
  EXPECT_EQ(kept.front(), 0);
  for (std::size_t i = 2; i < kept.size(); ++i) EXPECT_EQ(kept[i] - kept[i - 1], kept[1] - kept[0]);
}

}  // namespace
}  // namespace motley::trace
