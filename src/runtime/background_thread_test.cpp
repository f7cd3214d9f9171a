// Tasks on the background thread and their results on the event loop.
#include "runtime/background_thread.h"

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "transport/recording_callbacks_for_tests.h"

namespace motley::runtime {
namespace {

TEST(BackgroundThreads, Results_come_to_the_event_loop_in_order) {
  boost::asio::io_context io;
  const auto work = boost::asio::make_work_guard(io);
  BackgroundThread background(io);
  std::vector<int> results;
  const auto here = std::this_thread::get_id();
  for (int i = 0; i < 10; ++i)
    background.run([i, here] { return std::this_thread::get_id() == here ? -1 : i; },
                   [&](int result) {
                     EXPECT_EQ(std::this_thread::get_id(), here);
                     results.push_back(result);
                   });
  EXPECT_FALSE(background.idle());
  ASSERT_TRUE(transport::run_until(io, [&] { return background.idle(); }));
  EXPECT_EQ(results, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(BackgroundThreads, Results_are_dropped_after_destruction) {
  boost::asio::io_context io;
  bool done = false;
  {
    BackgroundThread background(io);
    background.run([] { return 1; }, [&](int) { done = true; });
  }
  transport::run_ready(io);
  EXPECT_FALSE(done);
}

}  // namespace
}  // namespace motley::runtime
