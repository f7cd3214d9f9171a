#include "runtime/task_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <numeric>
#include <vector>

namespace motley::runtime {
namespace {

TEST(TaskThread, RunsTasksInOrder) {
  std::vector<int> done;  // owned by the task thread until `last` is set
  std::promise<void> last;
  TaskThread thread;
  for (int i = 0; i < 1000; ++i) thread.post([&done, i] { done.push_back(i); });
  thread.post([&last] { last.set_value(); });
  last.get_future().wait();
  std::vector<int> in_order(1000);
  std::iota(in_order.begin(), in_order.end(), 0);
  EXPECT_EQ(done, in_order);
}

TEST(TaskThread, TasksCanPostTasks) {
  std::promise<void> inner;
  TaskThread thread;
  thread.post([&] { thread.post([&] { inner.set_value(); }); });
  inner.get_future().wait();
}

TEST(TaskThread, DestroysCapturesBeforeTheNextTask) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  std::promise<bool> freed;
  TaskThread thread;
  thread.post([held = std::move(held)] {});
  thread.post([&] { freed.set_value(watch.expired()); });
  EXPECT_TRUE(freed.get_future().get());
}

TEST(TaskThread, DestructorsOfCapturesCanPost) {
  std::promise<void> posted;
  TaskThread thread;
  thread.post([last = std::shared_ptr<void>(nullptr, [&](void*) { thread.post([&] { posted.set_value(); }); })] {});
  posted.get_future().wait();
}

TEST(TaskThread, FinishesTheRunningTaskAndDropsTheRest) {
  std::promise<void> begun, open;
  bool finished = false;
  bool dropped_one_ran = false;
  const auto held = std::make_shared<int>(1);
  {
    TaskThread thread;
    thread.post([&] {
      begun.set_value();
      open.get_future().wait();
      finished = true;
    });
    thread.post([&dropped_one_ran, held] { dropped_one_ran = true; });
    begun.get_future().wait();
    EXPECT_EQ(held.use_count(), 2);
    // The destructor drops tasks before it joins: dropping this one opens the gate. Joining first would hang, running it would set a flag.
    thread.post([opener = std::shared_ptr<void>(nullptr, [&open](void*) { open.set_value(); })] {});
  }
  EXPECT_TRUE(finished);
  EXPECT_FALSE(dropped_one_ran);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(TaskThread, TasksPostedDuringDestructionAreDropped) {
  std::promise<void> begun, open;
  bool ran = false;
  {
    TaskThread thread;
    thread.post([&] {
      begun.set_value();
      open.get_future().wait();
      thread.post([&] { ran = true; });
    });
    // Dropping this one opens the gate and posts from within the destructor.
    thread.post([opener = std::shared_ptr<void>(nullptr, [&](void*) {
                   thread.post([&] { ran = true; });
                   open.set_value();
                 })] {});
    begun.get_future().wait();
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace motley::runtime
