// The virtual clock's queue: earliest first, ties in the order of scheduling.
#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"

namespace motley::sim {
namespace {

TEST(EventQueue, BringsTheEarliestFirst) {
  EventQueue<std::string> queue;
  queue.at(at_seconds(3), "third");
  queue.at(at_seconds(1), "first");
  queue.at(at_seconds(2), "second");
  EXPECT_EQ(queue.next_time(), at_seconds(1));
  EXPECT_EQ(queue.pop().second, "first");
  EXPECT_EQ(queue.pop().second, "second");
  EXPECT_EQ(queue.pop().second, "third");
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, TiesGoByTheOrderOfScheduling) {
  EventQueue<int> queue;
  for (int i = 0; i < 100; ++i) queue.at(at_seconds(1), i);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(queue.pop().second, i);
}

TEST(EventQueue, AnEmptyQueueHasNoNextEvent) {
  EventQueue<int> queue;
  EXPECT_THROW((void)queue.pop(), Bug);
}

TEST(EventQueue, EqualsAStableSortHoweverComingsAndGoingsMix) {
  struct Expected {
    Instant when;
    int what;
  };
  Rng rng(1, "event queue");
  EventQueue<int> queue;
  std::vector<Expected> slow;  // the clear twin: kept sorted, newest last among equals
  for (int i = 0; i < 20'000; ++i) {
    if (rng.below(3) > 0 || slow.empty()) {
      const Instant when{Duration{static_cast<std::int64_t>(rng.below(50))}};
      queue.at(when, i);
      slow.insert(std::upper_bound(slow.begin(), slow.end(), when, [](Instant t, const Expected& e) { return t < e.when; }), {when, i});
    } else {
      const auto [when, what] = queue.pop();
      ASSERT_EQ(when, slow.front().when);
      ASSERT_EQ(what, slow.front().what);
      slow.erase(slow.begin());
    }
    ASSERT_EQ(queue.size(), slow.size());
  }
}

}  // namespace
}  // namespace motley::sim
