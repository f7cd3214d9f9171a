// A worker whose step is cancelled: before it begins, while it computes, and after it is done.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/match.h"
#include "protocol/worker.h"

namespace motley::protocol {
namespace {

constexpr WorkerId me{3};
constexpr WorkerId somebody_else{9};

/// A model of one slice; actions as short words, without heartbeats and Began.
struct Harness {
  Worker worker{{"node", {ServerId{0}}}};

  Harness() {
    step(Started{});
    step(Arrived{wire::Welcome{me, 1}});
  }
  std::string step(const WorkerEvent& event) {
    WorkerActions actions;
    worker.step({}, event, actions);
    std::string text;
    const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
    for (const WorkerAction& action : actions)
      std::visit(match{[&](const Send& send) {
                         if (const auto* push = std::get_if<wire::Push>(&send.message)) add(fmt::format("push {}", push->step.value));
                         if (const auto* done = std::get_if<wire::Contributed>(&send.message))
                           add(fmt::format("contributed {}", done->step.value));
                       },
                       [&](const Compute& compute) { add(fmt::format("compute {}", compute.order.step.value)); },
                       [&](const Abandon&) { add("abandon"); }, [&](const Quit&) { add("quit"); },
                       [&](const AwaitDevice&) { add("await the device"); }},
                 action);
    return text;
  }
  std::string order(std::uint64_t number) {
    Lease lease;
    lease.ranges.push_back({0, 0, 20});
    return step(Arrived{wire::Order{me, Step{number}, Step{number}, Version{number}, 1, 0.1, 32, {}, {}, 1, lease}});
  }
  std::string slice(std::uint64_t number) { return step(Arrived{wire::Pulled{me, Step{number}, Version{number}, SliceId{0}, 32}}); }
  std::string cancel(std::uint64_t number, WorkerId whose = me) { return step(Arrived{wire::Cancel{whose, Step{number}}}); }
  std::string computed(std::uint64_t number) {
    return step(Computed{.step = Step{number}, .report = {.loss_sum = 1, .squared_norm = 1, .compute = from_seconds(1)}});
  }
};

TEST(CancelledWorker, Drops_an_order_that_it_has_not_begun) {
  Harness h;
  h.order(1);
  EXPECT_EQ(h.cancel(1), "") << "it was not computing";
  EXPECT_EQ(h.slice(1), "") << "its parameters are ignored";
  h.order(2);
  EXPECT_EQ(h.slice(2), "compute 2");
}

TEST(CancelledWorker, Abandons_its_computation_and_waits) {
  Harness h;
  h.order(1);
  ASSERT_EQ(h.slice(1), "compute 1");
  EXPECT_EQ(h.cancel(1), "abandon");
  EXPECT_EQ(h.computed(1), "") << "the device was faster; its result is dropped";
  EXPECT_EQ(h.step(Produced{Step{1}, SliceId{0}}), "");
  EXPECT_EQ(h.cancel(1), "") << "said twice";
  h.order(2);
  EXPECT_EQ(h.slice(2), "compute 2");
  EXPECT_EQ(h.computed(2), "push 2, contributed 2") << "as usual";
}

TEST(CancelledWorker, Continues_at_once_with_a_waiting_order) {
  Harness h;
  h.order(1);
  h.slice(1);
  h.order(2);
  h.slice(2);
  EXPECT_EQ(h.cancel(1), "abandon, compute 2");
}

TEST(CancelledWorker, Keeps_computing_when_a_later_order_is_cancelled) {
  Harness h;
  h.order(1);
  h.slice(1);
  h.order(2);
  h.slice(2);
  EXPECT_EQ(h.cancel(2), "");
  EXPECT_EQ(h.computed(1), "push 1, contributed 1") << "and has no further order";
  h.order(3);
  EXPECT_EQ(h.slice(3), "compute 3");
}

TEST(CancelledWorker, Cancel_after_the_end_changes_nothing) {
  Harness h;
  h.order(1);
  h.slice(1);
  h.computed(1);
  EXPECT_EQ(h.cancel(1), "");
  h.order(2);
  ASSERT_EQ(h.slice(2), "compute 2");
  EXPECT_EQ(h.cancel(1), "");
  EXPECT_EQ(h.computed(2), "push 2, contributed 2");
}

TEST(CancelledWorker, Ignores_a_Cancel_for_another_worker) {
  Harness h;
  h.order(1);
  h.slice(1);
  EXPECT_EQ(h.cancel(1, somebody_else), "");
  EXPECT_EQ(h.computed(1), "push 1, contributed 1");
}

TEST(CancelledWorker, Ignores_Cancel_outside_of_membership) {
  Worker pending_worker({"node", {ServerId{0}}});
  WorkerActions actions;
  pending_worker.step({}, Arrived{wire::Cancel{me, Step{1}}}, actions);
  EXPECT_TRUE(actions.empty());
  Harness h;
  h.step(Arrived{wire::Stop{}});
  EXPECT_EQ(h.cancel(1), "");
}

}  // namespace
}  // namespace motley::protocol
