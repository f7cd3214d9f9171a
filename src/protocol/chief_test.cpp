// The chief: when a contribution is complete, the effect of a death, and refusals.
#include "protocol/chief.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "protocol/chief_driver_for_tests.h"

namespace motley::protocol {
namespace {

using Workers = std::vector<WorkerId>;
constexpr WorkerId ann{0};
constexpr WorkerId bob{1};

// A contribution -----------------------------------------------------------------------------------------------------------------------

TEST(Contribution, Is_complete_when_reported_and_gathered_in_any_order) {
  for (int order = 0; order < 6; ++order) {
    ChiefDriver h = driver_of("asp");
    h.hello(0);
    std::vector<int> parts{0, 1, 2};  // reported, gathered at 0, gathered at 1
    for (int i = 0; i < order; ++i) std::next_permutation(parts.begin(), parts.end());
    for (const int part : parts) {
      EXPECT_EQ(h.chief.version(), Version{0});
      part == 0 ? h.report_contributed(ann) : h.report_gathered(static_cast<std::uint32_t>(part) - 1, ann);
    }
    EXPECT_EQ(h.chief.version(), Version{1});
    ASSERT_EQ(h.recorded<Completed>().size(), 1U);
    EXPECT_EQ(h.recorded<Completed>()[0].samples, 20U);
    ASSERT_EQ(h.recorded<Counted>().size(), 1U);
    EXPECT_EQ(h.recorded<Counted>()[0].weight, 1.0);
    EXPECT_EQ(h.sent<wire::Apply>().size(), 2U) << "each server once";
    EXPECT_EQ(h.chief.ledger().counted(), 20U);
  }
}

TEST(Contribution, Update_announces_the_next_rate) {
  ChiefDriver h{small_job(), {"asp", {}, {}}, 20, {.lr = 0.1, .warmup = 4}};
  h.hello(0);
  double announced = 0.025;
  for (int update = 0; update < 6; ++update) {
    h.finish(ann);
    ASSERT_FALSE(h.sent<wire::Apply>().empty());
    EXPECT_DOUBLE_EQ(h.sent<wire::Apply>()[0].rate, announced);
    announced = h.sent<wire::Apply>()[0].next_rate;
    EXPECT_DOUBLE_EQ(announced, std::min(0.1, 0.025 * (update + 2)));
  }
}

TEST(Contribution, Reported_twice_counts_once) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.report_contributed(ann);
  h.report_contributed(ann);
  EXPECT_TRUE(h.last.empty());
}

TEST(Contribution, Of_another_step_or_worker_is_ignored) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.hello(1);
  h.say(ann, wire::Contributed{.worker = ann, .step = Step{5}, .report = {.samples = 20, .squared_norm = 1}});
  h.say(ann, wire::Contributed{.worker = bob, .step = h.orders.at(bob).step, .report = {.samples = 10, .squared_norm = 1}});
  h.report_gathered(0, bob);
  h.report_gathered(1, bob);
  EXPECT_EQ(h.chief.version(), Version{0});
}

TEST(Contribution, Counts_the_ordered_samples_whatever_is_reported) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.say(ann, wire::Contributed{.worker = ann, .step = h.orders.at(ann).step, .report = {.samples = 5'000'000, .squared_norm = 1}});
  h.report_gathered(0, ann);
  h.report_gathered(1, ann);
  ASSERT_EQ(h.recorded<Counted>().size(), 1U);
  EXPECT_EQ(h.recorded<Counted>()[0].samples, 20U);
  EXPECT_EQ(h.recorded<Counted>()[0].weight, 1.0);
}

TEST(Contribution, Has_its_staleness_counted_in_versions) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.hello(1);
  h.finish(ann);
  h.finish(ann);
  h.finish(bob);
  ASSERT_EQ(h.recorded<Counted>().size(), 1U);
  EXPECT_EQ(h.recorded<Counted>()[0].staleness, 2U);
  EXPECT_EQ(h.recorded<Counted>()[0].version, Version{3});
}

TEST(Contribution, Order_follows_its_release_with_the_reason) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.finish(ann);
  ASSERT_EQ(h.recorded<Released>().size(), 1U);
  const Released released = h.recorded<Released>()[0];
  EXPECT_EQ(released.worker, ann);
  EXPECT_EQ(released.why, policy::Why::on_arrival);
  EXPECT_EQ(released.version, Version{1});
  EXPECT_EQ(released.step, h.orders.at(ann).step);
  EXPECT_EQ(h.sent<wire::Release>().size(), 2U);
  EXPECT_EQ(h.sent<wire::Release>()[0].step, released.step);
  EXPECT_EQ(h.orders.at(ann).version, Version{1});
}

// Deaths -------------------------------------------------------------------------------------------------------------------------------

struct Death {
  std::string name;
  void (*happens)(ChiefDriver&);
  LeaveReason why;
  bool fenced;
};
const std::vector<Death> deaths{
    {"connection lost", [](ChiefDriver& h) { h.lose(ann); }, LeaveReason::connection_lost, false},
    {"goodbye", [](ChiefDriver& h) { h.say(ann, wire::Leaving{ann}); }, LeaveReason::said_goodbye, false},
    {"silence",
     [](ChiefDriver& h) {
       h.now = at_seconds(4);
       h.say(bob, wire::Heartbeat{bob});
       h.tick_at(5.1);
     },
     LeaveReason::silent_too_long, true},
};

TEST(Death, Before_completion_returns_the_lease) {
  for (const Death& death : deaths)
    for (int phase = 0; phase < 4; ++phase) {
      SCOPED_TRACE(testing::Message() << death.name << ", phase " << phase);
      ChiefDriver h = driver_of("asp");
      h.hello(0);
      h.hello(1);
      const wire::Order lost = h.orders.at(ann);
      if (phase == 1) h.report_contributed(ann);
      if (phase >= 2) h.report_gathered(0, ann);
      if (phase == 3) h.report_gathered(1, ann);
      death.happens(h);
      ASSERT_EQ(h.recorded<Left>().size(), 1U);
      EXPECT_EQ(h.recorded<Left>()[0].why, death.why);
      EXPECT_EQ(h.sent<wire::Fenced>().size(), death.fenced ? 1U : 0U);
      EXPECT_EQ(h.sent<wire::Discard>().size(), 2U);
      EXPECT_EQ(h.sent<wire::Forget>().size(), 2U);
      EXPECT_EQ(h.chief.ledger().leased(), h.orders.at(bob).lease.size());
      h.finish(bob);
      EXPECT_EQ(h.orders.at(bob).lease.ranges[0], lost.lease.ranges[0]) << "the other worker gets its lease";
    }
}

TEST(Death, After_completion_still_counts) {
  for (const Death& death : deaths) {
    SCOPED_TRACE(death.name);
    ChiefOptions options = small_job();
    options.quorum = 2;
    ChiefDriver h = driver_of("bsp", options);
    h.hello(0);
    h.hello(1);
    h.finish(ann);
    death.happens(h);
    EXPECT_TRUE(h.sent<wire::Discard>().empty());
    h.finish(bob);
    EXPECT_EQ(h.sent<wire::Apply>()[0].parts.size(), 2U);
    EXPECT_EQ(h.chief.ledger().counted(), 20U);
    EXPECT_EQ(h.ordered(), (Workers{bob}));
  }
}

TEST(Death, Late_messages_change_nothing) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.hello(1);
  const wire::Order lost = h.orders.at(ann);
  h.lose(ann);
  h.say(ann, wire::Contributed{.worker = ann, .step = lost.step, .report = {.samples = 20, .squared_norm = 1}});
  EXPECT_EQ(h.sent<wire::Fenced>().size(), 1U);
  h.step(Received{peer(ServerId{0}), wire::Gathered{ServerId{0}, ann, lost.step}});
  EXPECT_TRUE(h.last.empty());
  h.lose(ann);
  EXPECT_TRUE(h.last.empty()) << "it can only be lost once";
  EXPECT_EQ(h.chief.version(), Version{0});
}

TEST(Death, Rejoining_worker_gets_a_new_id) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.lose(ann);
  h.now = at_seconds(30);
  EXPECT_EQ(h.hello(1), bob);
  EXPECT_EQ(h.orders.at(bob).lease.ranges[0].first, 0U);
}

// Refusals -----------------------------------------------------------------------------------------------------------------------------

TEST(Refusal, Non_finite_contribution_is_discarded) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  const wire::Order first = h.orders.at(ann);
  h.finish(ann, false);
  ASSERT_EQ(h.recorded<Dropped>().size(), 1U);
  EXPECT_EQ(h.recorded<Dropped>()[0].why, policy::Why::not_finite);
  EXPECT_EQ(h.sent<wire::Discard>().size(), 2U);
  EXPECT_TRUE(h.sent<wire::Apply>().empty());
  EXPECT_EQ(h.orders.at(ann).lease, first.lease);
  EXPECT_EQ(h.orders.at(ann).step, first.step.next());
}

TEST(Refusal, NaN_norm_is_refused_too) {
  for (const double norm : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    ChiefDriver h = driver_of("asp");
    h.hello(0);
    h.say(ann, wire::Contributed{.worker = ann, .step = h.orders.at(ann).step, .report = {.samples = 20, .squared_norm = norm}});
    h.report_gathered(0, ann);
    h.report_gathered(1, ann);
    EXPECT_EQ(h.recorded<Dropped>().size(), 1U);
  }
}

TEST(Refusal, Worker_with_only_NaN_is_expelled) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.hello(1);
  h.finish(ann);
  for (int i = 0; i < 3; ++i) h.finish(bob, false);
  EXPECT_TRUE(h.recorded<Left>().empty());
  h.finish(bob, false);
  ASSERT_EQ(h.recorded<Left>().size(), 1U);
  EXPECT_EQ(h.recorded<Left>()[0].why, LeaveReason::never_finite);
  EXPECT_FALSE(h.chief.finished());
  h.finish(ann);
  EXPECT_EQ(h.chief.version(), Version{2});
}

/// The model may be at fault: then no worker is expelled for it.
TEST(Refusal, No_worker_is_expelled_when_all_are_non_finite) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.hello(1);
  h.finish(ann);  // on the earlier parameters
  h.finish(bob);
  std::size_t left = 0;
  for (int i = 0; !h.chief.finished(); ++i) {
    ASSERT_LT(i, 100);
    h.finish(i % 2 == 0 ? ann : bob, false);
    left += h.recorded<Left>().size();
  }
  EXPECT_EQ(left, 0U);
  EXPECT_EQ(h.recorded<Finished>()[0].why, EndReason::diverged);
}

TEST(Refusal, Verdict_waits_for_a_slow_worker) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.hello(1);
  for (int i = 0; i < 40; ++i) h.finish(ann, false);  // bob is still in his first step
  EXPECT_FALSE(h.chief.finished());
  h.finish(bob);
  h.finish(ann, false);
  ASSERT_EQ(h.recorded<Left>().size(), 1U);
  EXPECT_EQ(h.recorded<Left>()[0].worker, ann);
  EXPECT_EQ(h.recorded<Left>()[0].why, LeaveReason::never_finite);
}

TEST(Refusal, Worker_that_reports_NaN_as_finite_is_expelled) {
  for (const std::uint32_t server : {0U, 1U}) {
    ChiefDriver h = driver_of("asp");
    h.hello(0);
    h.hello(1);
    const wire::Order lie = h.orders.at(bob);
    h.report_contributed(bob);
    h.step(Received{peer(ServerId{server}), wire::Gathered{ServerId{server}, bob, lie.step, false}});
    EXPECT_TRUE(h.recorded<Left>().empty()) << "the other server has not reported yet";
    h.step(Received{peer(ServerId{1 - server}), wire::Gathered{ServerId{1 - server}, bob, lie.step, true}});
    ASSERT_EQ(h.recorded<Left>().size(), 1U);
    EXPECT_EQ(h.recorded<Left>()[0].why, LeaveReason::sent_not_finite);
    EXPECT_EQ(h.recorded<Dropped>()[0].step, lie.step);
    EXPECT_TRUE(h.sent<wire::Apply>().empty());
    EXPECT_EQ(h.sent<wire::Discard>().size(), 2U);
    EXPECT_EQ(h.sent<wire::Stop>().size(), 1U);
    h.finish(ann);
    EXPECT_EQ(h.orders.at(ann).lease.ranges.at(0), lie.lease.ranges.at(0)) << "other workers get its samples";
  }
}

TEST(Refusal, Worker_that_reports_NaN_itself_stays) {
  ChiefDriver h = driver_of("asp");
  h.hello(0);
  h.hello(1);
  const wire::Order order = h.orders.at(bob);
  h.report_contributed(bob, false);
  for (const std::uint32_t server : {0U, 1U})
    h.step(Received{peer(ServerId{server}), wire::Gathered{ServerId{server}, bob, order.step, false}});
  EXPECT_EQ(h.recorded<Dropped>().size(), 1U);
  EXPECT_TRUE(h.recorded<Left>().empty());
}

TEST(Refusal, Non_finite_model_ends_training_without_saving) {
  ChiefOptions options = small_job();
  options.checkpoint_every = 100;
  ChiefDriver h = driver_of("asp", options);
  h.hello(0);
  h.finish(ann);
  h.step(ModelNotFinite{});
  ASSERT_EQ(h.recorded<Finished>().size(), 1U);
  EXPECT_EQ(h.recorded<Finished>()[0].why, EndReason::diverged);
  EXPECT_TRUE(h.recorded<Checkpoint>().empty());
  h.step(ModelNotFinite{});
  EXPECT_TRUE(h.last.empty());
}

TEST(Refusal, Too_many_in_a_row_are_a_divergence) {
  ChiefOptions options = small_job();
  options.refusals_in_a_row = 3;
  ChiefDriver h = driver_of("asp", options);
  h.hello(0);
  h.finish(ann, false);
  h.finish(ann, false);
  h.finish(ann);
  h.finish(ann, false);
  h.finish(ann, false);
  EXPECT_FALSE(h.chief.finished()) << "a finite one in between resets the count";
  h.finish(ann, false);
  ASSERT_EQ(h.recorded<Finished>().size(), 1U);
  EXPECT_EQ(h.recorded<Finished>()[0].why, EndReason::diverged);
  EXPECT_EQ(h.sent<wire::Stop>().size(), 1U);
}

}  // namespace
}  // namespace motley::protocol
