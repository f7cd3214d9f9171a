// The end of training, evaluations, and that no action follows the end.
#include <gtest/gtest.h>

#include "protocol/chief_driver_for_tests.h"

namespace motley::protocol {
namespace {

using Workers = std::vector<WorkerId>;
constexpr WorkerId ann{0};
constexpr WorkerId bob{1};

/// A small job on one server, evaluated four times.
ChiefOptions evaluated_job() {
  ChiefOptions options = small_job();
  options.evaluate_every = 50;
  options.servers = 1;
  return options;
}

TEST(Evaluating, Happens_at_the_first_update_beyond_each_mark) {
  ChiefDriver h = driver_of("bsp", evaluated_job());
  h.hello(0);
  std::vector<std::uint64_t> evaluated;
  while (!h.chief.finished()) {
    h.finish(ann);
    for (const Evaluate& evaluate : h.recorded<Evaluate>()) {
      evaluated.push_back(evaluate.samples);
      EXPECT_EQ(evaluate.version, h.chief.version());
      ASSERT_EQ(h.sent<wire::Export>().size(), 1U);
      EXPECT_EQ(h.sent<wire::Export>()[0].version, evaluate.version);
    }
  }
  EXPECT_EQ(evaluated, (std::vector<std::uint64_t>{60, 100, 160, 200}));
}

TEST(Completing, Reports_the_mean_loss) {
  ChiefDriver h = driver_of("bsp", evaluated_job());
  h.hello(0);
  const wire::Order order = h.orders.at(ann);
  h.say(ann, wire::Contributed{.worker = ann,
                               .step = order.step,
                               .base = order.version,
                               .report = {.samples = 20, .loss_sum = 50.0, .squared_norm = 1, .compute = from_seconds(1)}});
  h.report_gathered(0, ann);
  ASSERT_EQ(h.recorded<Completed>().size(), 1U);
  EXPECT_EQ(h.recorded<Completed>()[0].samples, 20U);
  EXPECT_DOUBLE_EQ(h.recorded<Completed>()[0].loss, 2.5);
}

TEST(Evaluating, Update_beyond_several_marks_is_evaluated_once) {
  ChiefOptions options = evaluated_job();
  options.evaluate_every = 3;
  ChiefDriver h = driver_of("bsp", options);
  h.hello(0);
  h.finish(ann);
  EXPECT_EQ(h.recorded<Evaluate>().size(), 1U);
  EXPECT_EQ(h.recorded<Evaluate>()[0].samples, 20U);
}

TEST(TrainingOutcome, Ends_when_every_sample_is_counted) {
  for (const std::string_view strategy : policy::strategy_names()) {
    SCOPED_TRACE(strategy);
    ChiefDriver h = driver_of(std::string(strategy));
    for (std::uint32_t c = 0; c < 3; ++c) h.hello(c);
    for (int i = 0; i < 1000 && !h.chief.finished(); ++i) h.finish(h.orders.begin()->first);
    ASSERT_TRUE(h.chief.finished());
    EXPECT_EQ(h.recorded<Finished>()[0].why, EndReason::every_sample_counted);
    EXPECT_EQ(h.sent<wire::Stop>().size(), 3U);
    EXPECT_EQ(h.chief.ledger().counted(), 200U);
    EXPECT_EQ(h.chief.ledger().closed_epochs(), 2U);
    EXPECT_TRUE(std::holds_alternative<Finished>(h.last.back())) << "no action follows the end";
  }
}

TEST(TrainingOutcome, Waits_for_the_last_lease) {
  ChiefDriver h = driver_of("asp", evaluated_job());
  h.hello(0);
  h.hello(1);
  while (h.orders.contains(ann)) h.finish(ann);
  EXPECT_EQ(h.recorded<Idled>().size(), 1U) << "no samples are free";
  EXPECT_FALSE(h.chief.finished());
  h.lose(bob);
  EXPECT_EQ(h.ordered(), (Workers{ann})) << "it gets the lease of the dead worker";
  h.finish(ann);
  EXPECT_TRUE(h.chief.finished());
  EXPECT_EQ(h.chief.ledger().counted(), 200U);
}

TEST(TrainingOutcome, Ends_at_the_maximal_time) {
  ChiefOptions options = evaluated_job();
  options.max_time = from_seconds(100);
  ChiefDriver h = driver_of("asp", options);
  h.now = at_seconds(97);
  h.hello(0);
  h.finish(ann);
  h.tick_at(100);
  EXPECT_FALSE(h.chief.finished()) << "time counts from the first order";
  h.tick_at(196.9);
  EXPECT_FALSE(h.chief.finished());
  h.tick_at(197);
  ASSERT_EQ(h.recorded<Finished>().size(), 1U);
  EXPECT_EQ(h.recorded<Finished>()[0].why, EndReason::time_is_up);
  EXPECT_EQ(h.recorded<Evaluate>().size(), 1U) << "the last version is evaluated";
}

TEST(TrainingOutcome, Ends_after_a_long_time_without_members) {
  ChiefDriver h = driver_of("asp", evaluated_job());
  h.hello(0);
  h.now = at_seconds(2);
  h.lose(ann);
  h.tick_at(62);
  EXPECT_FALSE(h.chief.finished());
  h.tick_at(62.1);
  EXPECT_EQ(h.recorded<Finished>()[0].why, EndReason::nobody_left);
}

TEST(TrainingOutcome, Ends_when_pending_workers_left_before_the_start) {
  ChiefOptions options = evaluated_job();
  options.quorum = 2;
  ChiefDriver h = driver_of("asp", options);
  h.hello(0);
  h.now = at_seconds(2);
  h.lose_pending(0);
  h.tick_at(62);
  EXPECT_FALSE(h.chief.finished());
  h.tick_at(62.1);
  EXPECT_EQ(h.recorded<Finished>()[0].why, EndReason::nobody_left);
}

TEST(TrainingOutcome, Is_sent_to_pending_workers_too) {
  ChiefOptions options = evaluated_job();
  options.quorum = 2;
  ChiefDriver h = driver_of("asp", options);
  h.hello(7);
  h.step(Interrupted{});
  ASSERT_EQ(h.sent<wire::Stop>().size(), 1U);
  EXPECT_EQ(std::get<Send>(h.last.front()).to, pending_worker(7));
}

TEST(TrainingOutcome, New_member_resets_the_empty_deadline) {
  ChiefDriver h = driver_of("asp", evaluated_job());
  h.hello(0);
  h.lose(ann);
  h.now = at_seconds(59);
  h.hello(1);
  h.now = at_seconds(60);
  h.say(bob, wire::Heartbeat{bob});
  h.tick_at(61);
  EXPECT_FALSE(h.chief.finished());
}

TEST(TrainingOutcome, No_action_follows_it) {
  ChiefDriver h = driver_of("asp", evaluated_job());
  h.hello(0);
  h.hello(1);
  const wire::Order open = h.orders.at(bob);
  h.lose(bob);
  while (!h.chief.finished()) h.finish(ann);
  const Version version = h.chief.version();

  EXPECT_EQ(h.hello(5), std::nullopt);
  EXPECT_EQ(h.sent<wire::Stop>().size(), 1U) << "a worker that joins too late is stopped";
  h.say(bob, wire::Contributed{.worker = bob, .step = open.step, .report = {.samples = 10, .squared_norm = 1}});
  EXPECT_EQ(h.sent<wire::Stop>().size(), 1U) << "so is a fenced worker, which would wait for ever";
  h.say(ann, wire::Heartbeat{ann});
  EXPECT_TRUE(h.last.empty()) << "its Stop is in flight";
  h.step(Received{peer(ServerId{0}), wire::Gathered{ServerId{0}, ann, Step{1}}});
  h.lose(ann);
  EXPECT_TRUE(h.last.empty());
  h.tick_at(1000);
  EXPECT_EQ(h.sent<wire::Probe>().size(), h.last.size()) << "only servers may owe the last model";
  EXPECT_EQ(h.chief.version(), version);
}

}  // namespace
}  // namespace motley::protocol
