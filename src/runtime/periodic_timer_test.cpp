// Timers that repeat, and objects that are destroyed after the callback that gave them up.
#include "runtime/periodic_timer.h"

#include <gtest/gtest.h>

#include <memory>

#include "runtime/deferred_destruction.h"

namespace motley::runtime {
namespace {

using namespace std::chrono_literals;

TEST(PeriodicTimers, Call_until_stopped) {
  boost::asio::io_context io;
  PeriodicTimer timer(io);
  int ticks = 0;
  timer.start(1ms, [&] {
    if (++ticks == 3) timer.stop();
  });
  io.run();
  EXPECT_EQ(ticks, 3);
}

TEST(PeriodicTimers, Forget_the_earlier_function_when_started_again) {
  boost::asio::io_context io;
  PeriodicTimer timer(io);
  int earlier = 0, later = 0;
  timer.start(1ms, [&] {
    ++earlier;
    timer.start(1ms, [&] {
      if (++later == 2) timer.stop();
    });
  });
  io.run();
  EXPECT_EQ(earlier, 1);
  EXPECT_EQ(later, 2);
}

TEST(PeriodicTimers, May_be_destroyed_by_their_own_function) {
  boost::asio::io_context io;
  auto timer = std::make_unique<PeriodicTimer>(io);
  int ticks = 0;
  timer->start(1ms, [&] {
    ++ticks;
    timer.reset();
  });
  io.run();
  EXPECT_EQ(ticks, 1);
}

TEST(DeferredDestructions, Destroy_after_the_current_callback) {
  boost::asio::io_context io;
  DeferredDestruction retired(io);
  auto object = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = object;
  boost::asio::post(io, [&] {
    retired.add(std::move(object));
    EXPECT_FALSE(watch.expired());
  });
  io.run();
  EXPECT_TRUE(watch.expired());
}

TEST(DeferredDestructions, Destroy_what_waits_with_themselves) {
  boost::asio::io_context io;
  auto retired = std::make_unique<DeferredDestruction>(io);
  auto object = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = object;
  retired->add(std::move(object));
  retired.reset();
  EXPECT_TRUE(watch.expired());
  io.run();
}

}  // namespace
}  // namespace motley::runtime
