// parallel_for runs every piece once and returns when all are done.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>

#include "base/check.h"
#include "store/thread_pool.h"

namespace motley::store {
namespace {

class ThreadPoolLaw : public testing::TestWithParam<std::size_t> {};

TEST_P(ThreadPoolLaw, RunsEveryPieceOnceInEveryCall) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (std::size_t job = 0; job < 500; ++job) {
    const std::size_t pieces = job % 7;
    std::vector<int> done(pieces);  // not atomic: each is written by one thread and read after the call
    pool.parallel_for(pieces, [&](std::size_t piece) { ++done[piece]; });
    EXPECT_EQ(done, std::vector<int>(pieces, 1)) << "job " << job;
  }
}

TEST_P(ThreadPoolLaw, RethrowsAPiecesExceptionAndStaysUsable) {
  ThreadPool pool(GetParam());
  for (int job = 0; job < 50; ++job) {
    EXPECT_THROW(pool.parallel_for(20, [&](std::size_t piece) { check(piece != 3, "the third piece is good"); }), Bug);
    std::atomic<std::size_t> sum = 0;
    pool.parallel_for(20, [&](std::size_t piece) { sum += piece; });
    EXPECT_EQ(sum, 190U);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolLaw, testing::Values(1, 2, 3, 4));

TEST(ThreadPool, RejectsAPoolWithoutThreads) { EXPECT_THROW(ThreadPool(0), Bug); }

TEST(ThreadPool, SeveralThreadsTakePart) {
  ThreadPool pool(3);
  std::atomic<int> here = 0;
  pool.parallel_for(3, [&](std::size_t) {  // each waits for the other two, so no thread can run two of them
    ++here;
    while (here < 3) std::this_thread::yield();
  });
  EXPECT_EQ(here, 3);
}

TEST(UsefulThreads, GrowWithTheModelUpToTheLimit) {
  EXPECT_EQ(useful_threads(0, 16), 1U);
  EXPECT_EQ(useful_threads(100'000, 16), 1U);
  EXPECT_EQ(useful_threads(4 * piece_values, 16), 2U);
  EXPECT_EQ(useful_threads(100'000'000, 2), 2U);
  EXPECT_EQ(useful_threads(100'000'000, 0), 1U) << "the machine does not say";
  EXPECT_EQ(useful_threads(100'000'000, 256), 8U) << "memory feeds no more";
}

}  // namespace
}  // namespace motley::store
