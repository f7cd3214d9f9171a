// The chief with time-limited steps and overlapped rounds: remaining samples return, parameters are used twice.
#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"
#include "protocol/chief_driver_for_tests.h"

namespace motley::protocol {
namespace {

constexpr WorkerId ann{0};
constexpr WorkerId bob{1};

/// Two workers share batches of 20 out of 200 samples; two servers.
ChiefDriver driver(const policy::Knobs& knobs, std::uint64_t samples = 200, std::uint64_t checkpoint_every = 0) {
  ChiefOptions options;
  options.checkpoint_every = checkpoint_every;
  options.epoch_samples = 100;
  options.total_samples = samples;
  options.evaluate_every = 10'000;
  options.servers = 2;
  options.quorum = 2;
  ChiefDriver h(options, {"hps", knobs, {}}, 20);
  h.hello(0);
  h.hello(1);
  return h;
}

policy::Knobs sequential() {
  policy::Knobs knobs;
  knobs.overlap = 0;
  return knobs;
}

policy::Knobs overlapped() {
  policy::Knobs knobs;
  knobs.overlap = 1;
  knobs.time_limited = false;
  return knobs;
}

// Limits -----------------------------------------------------------------------------------------------------------------------------

TEST(Limits, No_limit_before_all_workers_are_measured) {
  ChiefDriver h = driver(sequential());
  EXPECT_EQ(h.orders.at(ann).limit, Duration{0});
  h.finish(ann);
  h.finish(bob);
  EXPECT_GT(h.orders.at(ann).limit, from_seconds(0.1));
  EXPECT_GE(h.orders.at(ann).micro, 1U);
}

TEST(Limits, Remaining_samples_return_and_the_others_count) {
  ChiefDriver h = driver(sequential());
  h.finish(ann);
  h.finish(bob);
  const wire::Order order = h.orders.at(ann);
  ASSERT_EQ(order.lease.size(), 10U);
  h.finish(ann, true, from_seconds(0.12), 6);
  ASSERT_EQ(h.recorded<Completed>().size(), 1U);
  EXPECT_EQ(h.recorded<Completed>()[0].samples, 6U);
  EXPECT_NEAR(h.recorded<Completed>()[0].loss, 1.0 / 6, 1e-12) << "the mean over the computed samples";
  ASSERT_EQ(h.recorded<Returned>().size(), 1U);
  const Returned returned = h.recorded<Returned>()[0];
  EXPECT_EQ(returned.worker, ann);
  EXPECT_EQ(returned.step, order.step);
  Lease done = order.lease;
  EXPECT_EQ(returned.lease, done.cut(6)) << "the last four";
  EXPECT_EQ(h.chief.ledger().leased(), 16U);
  h.finish(bob);
  EXPECT_EQ(h.chief.ledger().counted(), 20U + 16U);
  const auto counted = h.recorded<Counted>();
  ASSERT_EQ(counted.size(), 2U);
  EXPECT_EQ(counted[0].samples, 6U);
  EXPECT_DOUBLE_EQ(counted[0].weight, 6.0 / 20);
  EXPECT_DOUBLE_EQ(h.sent<wire::Apply>()[0].share, 16.0 / 20);
  EXPECT_EQ(h.orders.at(ann).lease.ranges[0].first, returned.lease.ranges[0].first) << "and is granted first";
}

TEST(Limits, Complete_step_returns_no_samples) {
  ChiefDriver h = driver(sequential());
  h.finish(ann);
  h.finish(bob);
  h.finish(ann);
  EXPECT_TRUE(h.recorded<Returned>().empty());
}

TEST(Limits, Without_a_limit_the_ordered_samples_count) {
  ChiefDriver h = driver(sequential());
  h.finish(ann, true, from_seconds(0.1), 6);
  EXPECT_TRUE(h.recorded<Returned>().empty());
  h.finish(bob);
  EXPECT_EQ(h.chief.ledger().counted(), 20U);
  policy::Knobs without_time_limit = sequential();
  without_time_limit.time_limited = false;
  ChiefDriver other = driver(without_time_limit);
  for (int round = 1; round <= 3; ++round) {
    EXPECT_EQ(other.orders.at(ann).limit, Duration{0});
    other.finish(ann, true, from_seconds(0.1), 6);
    other.finish(bob);
    EXPECT_EQ(other.chief.ledger().counted(), 20U * static_cast<std::uint64_t>(round));
  }
}

TEST(Limits, Impossible_numbers_of_samples_are_clamped) {
  for (const std::uint32_t reported : {0U, 5'000'000U}) {
    ChiefDriver h = driver(sequential());
    h.finish(ann);
    h.finish(bob);
    const wire::Order order = h.orders.at(ann);
    h.say(ann, wire::Contributed{.worker = ann,
                                 .step = order.step,
                                 .base = order.version,
                                 .report = {.samples = reported, .loss_sum = 1, .squared_norm = 1, .compute = from_seconds(0.1)}});
    h.report_gathered(0, ann);
    h.report_gathered(1, ann);
    ASSERT_EQ(h.recorded<Completed>().size(), 1U);
    EXPECT_EQ(h.recorded<Completed>()[0].samples, reported == 0 ? 1U : 10U);
    EXPECT_EQ(h.recorded<Returned>().size(), reported == 0 ? 1U : 0U);
  }
}

TEST(Limits, Every_sample_counts_once_at_any_limit) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed, "limits");
    ChiefDriver h = driver(seed % 2 == 0 ? sequential() : policy::Knobs{});
    for (int step = 0; step < 2000 && !h.chief.finished(); ++step) {
      std::vector<WorkerId> busy;
      for (const auto& [worker, order] : h.orders) busy.push_back(worker);
      ASSERT_FALSE(busy.empty()) << "seed " << seed;
      const WorkerId worker = busy[rng.below(busy.size())];
      const wire::Order order = h.orders.at(worker);
      const auto done = static_cast<std::uint32_t>(1 + rng.below(order.lease.size()));
      h.now += from_seconds(0.01);
      h.finish(worker, true, from_seconds(0.1 * rng.log_normal(0.2)), order.limit > Duration{0} ? done : 0);
    }
    EXPECT_TRUE(h.chief.finished()) << "seed " << seed;
    EXPECT_EQ(h.chief.ledger().counted(), 200U) << "seed " << seed;
    EXPECT_EQ(h.chief.ledger().leased(), 0U) << "seed " << seed;
  }
}

// Overlap

TEST(Overlapping, Second_order_at_one_version_reuses_the_parameters) {
  ChiefDriver h = driver(overlapped());
  ASSERT_EQ(h.sent<wire::Order>().size(), 4U);
  EXPECT_EQ(h.sent<wire::Release>().size(), 4U) << "two workers, two servers, once";
  const wire::Order first = h.orders.at(ann);
  const wire::Order second = h.later.at(ann).front();
  EXPECT_EQ(first.parameters, first.step);
  EXPECT_EQ(second.step, first.step.next());
  EXPECT_EQ(second.parameters, first.step);
  EXPECT_EQ(second.version, first.version);
  h.finish(ann);
  h.finish(bob);
  const wire::Order third = h.later.at(ann).front();
  EXPECT_EQ(third.parameters, third.step) << "the version has increased";
  EXPECT_EQ(third.version, Version{1});
}

TEST(Overlapping, Worker_that_dies_with_two_steps_returns_both_leases) {
  ChiefDriver h = driver(overlapped());
  EXPECT_EQ(h.chief.ledger().leased(), 40U);
  h.lose(ann);
  EXPECT_EQ(h.chief.ledger().leased(), 20U);
  EXPECT_EQ(h.sent<wire::Discard>().size(), 4U) << "two steps, two servers";
  h.finish(bob);
  EXPECT_EQ(h.chief.version(), Version{1});
}

TEST(Overlapping, Step_on_the_last_version_has_staleness_one) {
  ChiefDriver h = driver(overlapped());
  for (int round = 0; round < 4; ++round) {
    h.finish(ann);
    h.finish(bob);
    ASSERT_EQ(h.recorded<Counted>().size(), 2U);
    EXPECT_EQ(h.recorded<Counted>()[0].staleness, round == 0 ? 0U : 1U);
  }
}

TEST(Residuals, Contribution_before_a_checkpoint_is_sent_in_full) {
  for (const std::uint32_t overlap : {0U, 1U}) {
    policy::Knobs knobs;
    knobs.overlap = overlap;
    knobs.time_limited = false;
    knobs.bits = policy::BitsConfig{.dynamic = false, .fixed = {4, 8}};
    ChiefDriver h = driver(knobs, 400, 5);
    for (std::uint64_t version = 1; version <= 12; ++version) {
      const bool may_be_saved =
          version % 5 == 0 || (overlap == 1 && version > 1 && version % 5 == 1);  // one round more when rounds overlap
      EXPECT_EQ(int{h.orders.at(ann).push_bits}, may_be_saved ? 32 : 4) << "for version " << version;
      h.finish(ann);
      h.finish(bob);
      EXPECT_EQ(h.recorded<Checkpoint>().size(), version % 5 == 0 ? 1U : 0U);
    }
  }
}

TEST(Overlapping, NaN_loss_is_refused_before_any_average) {
  for (const double loss : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    ChiefDriver h = driver(overlapped());
    const wire::Order order = h.orders.at(ann);
    h.say(ann, wire::Contributed{.worker = ann,
                                 .step = order.step,
                                 .base = order.version,
                                 .report = {.samples = 10, .loss_sum = loss, .squared_norm = 1, .compute = from_seconds(0.1)}});
    h.report_gathered(0, ann);
    h.report_gathered(1, ann);
    ASSERT_EQ(h.recorded<Dropped>().size(), 1U);
    EXPECT_EQ(h.recorded<Dropped>()[0].why, policy::Why::not_finite);
  }
}

TEST(Overlapping, NaN_in_an_encoded_contribution_is_refused) {
  policy::Knobs knobs = overlapped();
  knobs.bits = policy::BitsConfig{.dynamic = false, .fixed = {4, 8}};
  ChiefDriver h = driver(knobs);
  const wire::Order poisoned = h.orders.at(ann);
  EXPECT_EQ(poisoned.push_bits, 4);
  h.finish(ann, false);
  const auto dropped = h.recorded<Dropped>();
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(dropped[0].worker, ann);
  EXPECT_EQ(dropped[0].step, poisoned.step);
  EXPECT_EQ(dropped[0].why, policy::Why::not_finite);
  ASSERT_EQ(h.sent<wire::Discard>().size(), 2U);
  EXPECT_EQ(h.sent<wire::Discard>()[0].step, poisoned.step);
  h.finish(bob);
  EXPECT_EQ(h.sent<wire::Apply>()[0].parts.size(), 1U);
  h.finish(ann);
  h.finish(bob);
  EXPECT_EQ(h.sent<wire::Apply>()[0].parts.size(), 2U);
}

}  // namespace
}  // namespace motley::protocol
