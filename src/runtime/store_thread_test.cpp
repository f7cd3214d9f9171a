// The store thread: work runs in order, results come back to the event loop, and nothing comes back to an owner that is gone.
#include "runtime/store_thread_for_tests.h"

namespace motley::runtime {
namespace {

using StoreThreadTest = StoreThreadFixture;

TEST_F(StoreThreadTest, RunsWorkInOrderOnOneThread) {
  std::vector<int> order;
  std::set<std::thread::id> threads;
  for (int i = 0; i < 20; ++i)
    thread->run([&, i](store::ShardStore&) {
      order.push_back(i);
      threads.insert(std::this_thread::get_id());
    });
  finish_work();
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), 20U);
  EXPECT_EQ(threads.size(), 1U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST_F(StoreThreadTest, DeliversResultsOnTheEventLoop) {
  std::optional<Version> version;
  std::thread::id delivered_on;
  thread->run([](store::ShardStore& store) { return store.version(); },
              [&](Version result) {
                version = result;
                delivered_on = std::this_thread::get_id();
              });
  ASSERT_TRUE(transport::run_until(io, [&] { return version.has_value(); }));
  EXPECT_EQ(*version, Version{0});
  EXPECT_EQ(delivered_on, std::this_thread::get_id());
}

TEST_F(StoreThreadTest, DeliversNothingOnceItIsDestroyed) {
  bool delivered = false;
  thread->run([](store::ShardStore&) {}, [&] { delivered = true; });
  thread->deliver([&] { delivered = true; });
  thread.reset();
  transport::run_ready(io);
  EXPECT_FALSE(delivered);
}

TEST_F(StoreThreadTest, StartsFromTheGivenVersion) {
  store::Moments moments;
  moments.first.resize(linear_values);
  initial_state = {linear_start(), moments, Version{7}};
  thread.emplace(io, layout, server, OptimizerSpec{}, initial_state, 1);
  Version version;
  thread->run([](store::ShardStore& store) { return store.version(); }, [&](Version result) { version = result; });
  finish_work();
  EXPECT_EQ(version, Version{7});
}

}  // namespace
}  // namespace motley::runtime
