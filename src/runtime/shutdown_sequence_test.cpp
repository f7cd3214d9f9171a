// The order in which a cluster ends.
#include "runtime/shutdown_sequence.h"

#include <gtest/gtest.h>

#include "transport/recording_callbacks_for_tests.h"

namespace motley::runtime {
namespace {

using Next = ShutdownSequence::Next;

TEST(ShutdownSequences, Servers_stop_after_the_workers) {
  boost::asio::io_context io;
  int advanced = 0;
  ShutdownSequence shutdown(io, [&] { ++advanced; });
  shutdown.begin();
  transport::run_ready(io);
  EXPECT_EQ(advanced, 1) << "at once: there may be nothing to wait for";
  EXPECT_EQ(shutdown.next(true, true), Next::wait);
  EXPECT_EQ(shutdown.next(false, true), Next::stop_servers);
  EXPECT_EQ(shutdown.next(false, true), Next::wait);
  EXPECT_EQ(shutdown.next(false, false), Next::end);
}

TEST(ShutdownSequences, Processes_that_do_not_close_are_not_awaited) {
  boost::asio::io_context io;
  int advanced = 0;
  ShutdownSequence shutdown(io, [&] { ++advanced; });
  shutdown.begin();
  ASSERT_TRUE(transport::run_until(io, [&] { return advanced == 2; }));
  EXPECT_EQ(shutdown.next(true, true), Next::stop_servers);
  EXPECT_EQ(shutdown.next(true, true), Next::wait) << "the servers have a time limit of their own";
  ASSERT_TRUE(transport::run_until(io, [&] { return advanced == 3; }));
  EXPECT_EQ(shutdown.next(true, true), Next::end);
}

}  // namespace
}  // namespace motley::runtime
