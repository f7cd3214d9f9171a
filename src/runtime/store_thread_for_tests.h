// For tests: server 0 of two over the linear model, its store thread, and an event loop that the test turns.
#pragma once
#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <vector>

#include "runtime/fake_connection_for_tests.h"
#include "runtime/linear_source_for_tests.h"
#include "runtime/store_thread.h"
#include "transport/recording_callbacks_for_tests.h"

namespace motley::runtime {

class StoreThreadFixture : public testing::Test {
 protected:
  /// Runs the event loop until all work given to the store thread so far is done and delivered.
  void finish_work() {
    bool finished = false;
    thread->run([](store::ShardStore&) {}, [&] { finished = true; });
    ASSERT_TRUE(transport::run_until(io, [&] { return finished; }));
  }
  /// Blocks the store thread until the gate opens.
  void block(Gate& gate) {
    gate.close();
    thread->run([&gate](store::ShardStore&) { gate.pass(); });
  }

  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  store::Layout layout = linear_layout(2);
  ServerId server{0};
  std::vector<SliceId> own = layout.of(server);
  InitialState initial_state{linear_start(), std::nullopt, {}};
  std::optional<StoreThread> thread{std::in_place, io, layout, server, OptimizerSpec{}, initial_state, 2};
};

}  // namespace motley::runtime
