// The chief with a strategy that tests alignment and cancels: its messages to servers, the answers that it accepts, and the returned
// samples.
#include <gtest/gtest.h>

#include <algorithm>

#include "protocol/chief_driver_for_tests.h"

namespace motley::protocol {
namespace {

constexpr WorkerId ann{0};
constexpr WorkerId bob{1};
constexpr WorkerId cid{2};
constexpr std::uint64_t samples = 3000;

/// Three workers share batches of 30; two servers; steps have no time limit; beyond a gap of 3 versions a worker is over-stale. Each worker
/// has made one step of 100 ms, so the second ends for ann and bob at 200 ms.
/// step of 100 ms, so the second ends for ann and bob at 200 ms.
ChiefDriver driver(std::optional<policy::Off> without = std::nullopt) {
  ChiefOptions options;
  options.epoch_samples = samples;
  options.total_samples = samples;
  options.evaluate_every = 10'000;
  options.servers = 2;
  options.quorum = 3;
  options.silence_deadline = from_seconds(1000);
  policy::Knobs knobs;
  knobs.time_limited = false;
  knobs.bound_max = 3;
  knobs.replan = 100'000;
  knobs.without = without;
  ChiefDriver h(options, {"adaptive", knobs, {}}, 30);
  for (std::uint32_t connection = 0; connection < 3; ++connection) h.hello(connection);
  h.now = at_seconds(0.1);
  for (const WorkerId worker : {ann, bob, cid}) h.finish(worker);
  return h;
}

/// Ann and bob make a step of 100 ms with a pull of 5 ms. The first time they are held for cid, until it counts as a straggler.
/// straggle.
void round_of_two(ChiefDriver& h) {
  h.now += from_seconds(0.1);
  for (const WorkerId worker : {ann, bob})
    if (h.orders.contains(worker)) h.finish(worker);
  if (!h.orders.contains(ann)) h.tick_at(seconds(h.now) + 0.04);
}

/// `last` has the chief's actions when cid is cancelled.
bool cancelled(ChiefDriver& h) {
  for (int round = 0; round < 10; ++round) {
    round_of_two(h);
    if (!h.recorded<Cancelled>().empty()) return true;
  }
  return false;
}

/// Cid's contribution arrives over-stale; `last` has the chief's actions. Returns its order. No step is cancelled here.
wire::Order over_stale(ChiefDriver& h) {
  const wire::Order order = h.orders.at(cid);
  for (int round = 0; round < 4; ++round) round_of_two(h);
  h.finish(cid);
  return order;
}

void say_alignment(ChiefDriver& h, std::uint32_t server, const wire::Order& order, double alignment,
                   std::optional<Peer> from = std::nullopt) {
  h.step(Received{from.value_or(peer(ServerId{server})), wire::AlignmentResult{ServerId{server}, cid, order.step, alignment}});
}

bool counted(const ChiefDriver& h, WorkerId worker, Step step) {
  const auto all = h.recorded<Counted>();
  return std::any_of(all.begin(), all.end(), [&](const Counted& one) { return one.worker == worker && one.step == step; });
}

// Alignment tests ----------------------------------------------------------------------------------------------------------------------

TEST(AlignmentTesting, Applies_a_contribution_with_a_positive_sum) {
  ChiefDriver h = driver(policy::Off::cancel);
  const wire::Order order = over_stale(h);
  const auto asked = h.sent<wire::AlignmentTest>();
  ASSERT_EQ(asked.size(), 2U) << "one per server";
  EXPECT_EQ(asked[0].worker, cid);
  EXPECT_EQ(asked[0].step, order.step);
  EXPECT_FALSE(counted(h, cid, order.step));
  say_alignment(h, 0, order, -1);
  EXPECT_TRUE(h.last.empty()) << "the other server's result may be larger";
  say_alignment(h, 1, order, 1.5);
  EXPECT_TRUE(counted(h, cid, order.step));
  ASSERT_EQ(h.sent<wire::Apply>().size(), 2U);
  EXPECT_EQ(h.sent<wire::Apply>()[0].kind, wire::UpdateKind::bypass_momentum);
  EXPECT_EQ(h.ordered(), std::vector<WorkerId>{cid}) << "its worker continues";
}

TEST(AlignmentTesting, Discards_a_contribution_with_a_negative_sum) {
  ChiefDriver h = driver(policy::Off::cancel);
  const wire::Order order = over_stale(h);
  const std::uint64_t counted_before = h.chief.ledger().counted();
  const std::uint64_t leased_before = h.chief.ledger().leased();
  say_alignment(h, 1, order, 1);
  say_alignment(h, 0, order, -1.5);
  ASSERT_EQ(h.recorded<Discarded>().size(), 1U);
  EXPECT_EQ(h.recorded<Discarded>()[0].step, order.step);
  EXPECT_EQ(h.recorded<Discarded>()[0].why, policy::Why::against_momentum);
  EXPECT_EQ(h.sent<wire::Discard>().size(), 2U);
  EXPECT_TRUE(h.sent<wire::Apply>().empty());
  EXPECT_EQ(h.chief.ledger().counted(), counted_before);
  ASSERT_EQ(h.ordered(), std::vector<WorkerId>{cid});
  EXPECT_EQ(h.orders.at(cid).lease, order.lease) << "returned samples are granted first";
  EXPECT_EQ(h.chief.ledger().leased(), leased_before);
}

TEST(AlignmentTesting, Duplicate_and_foreign_results_change_nothing) {
  ChiefDriver h = driver(policy::Off::cancel);
  const wire::Order order = over_stale(h);
  say_alignment(h, 0, order, 1);
  say_alignment(h, 0, order, 100);
  EXPECT_TRUE(h.last.empty()) << "twice by one server";
  say_alignment(h, 1, order, 100, peer(ServerId{0}));
  EXPECT_TRUE(h.last.empty()) << "by one server for the other";
  say_alignment(h, 1, order, 100, peer(ann));
  EXPECT_TRUE(h.last.empty()) << "by a worker";
  say_alignment(h, 1, order, 100, pending_worker(7));
  EXPECT_TRUE(h.last.empty()) << "by a pending worker";
  h.step(Received{peer(ServerId{1}), wire::AlignmentResult{ServerId{1}, ann, h.orders.at(ann).step, 100}});
  EXPECT_TRUE(h.last.empty()) << "without a test";
  say_alignment(h, 1, order, -2);
  EXPECT_EQ(h.recorded<Discarded>().size(), 1U) << "1 - 2 < 0: no other result was counted";
  say_alignment(h, 0, order, 5);
  say_alignment(h, 1, order, 5);
  EXPECT_TRUE(h.last.empty()) << "the test has ended";
}

TEST(AlignmentTesting, Continues_after_its_worker_has_left) {
  for (const double alignment : {1.0, -1.0}) {
    ChiefDriver h = driver(policy::Off::cancel);
    const wire::Order order = over_stale(h);
    h.lose(cid);
    say_alignment(h, 0, order, alignment);
    say_alignment(h, 1, order, alignment);
    EXPECT_EQ(counted(h, cid, order.step), alignment > 0);
    EXPECT_EQ(h.recorded<Discarded>().size(), alignment > 0 ? 0U : 1U);
    for (const WorkerId worker : h.ordered()) EXPECT_NE(worker, cid);
  }
}

// Cancelling -------------------------------------------------------------------------------------------------------------------------

TEST(Cancelling, Returns_the_lease_and_informs_worker_and_servers) {
  ChiefDriver h = driver();
  const wire::Order order = h.orders.at(cid);
  ASSERT_TRUE(cancelled(h));
  ASSERT_EQ(h.recorded<Cancelled>().size(), 1U);
  EXPECT_EQ(h.recorded<Cancelled>()[0].worker, cid);
  EXPECT_EQ(h.recorded<Cancelled>()[0].step, order.step);
  EXPECT_EQ(h.recorded<Cancelled>()[0].why, policy::Why::over_stale);
  ASSERT_EQ(h.sent<wire::Cancel>().size(), 1U);
  EXPECT_EQ(h.sent<wire::Cancel>()[0].step, order.step);
  EXPECT_EQ(h.sent<wire::Discard>().size(), 2U);
  ASSERT_TRUE(h.orders.contains(cid)) << "it gets a new order";
  EXPECT_GT(h.orders.at(cid).step, order.step);
  EXPECT_EQ(h.orders.at(cid).version, h.chief.version()) << "on the newest version";
  EXPECT_EQ(h.orders.at(cid).lease.ranges[0].first, order.lease.ranges[0].first) << "with returned samples";
  std::uint64_t leased = 0;
  for (const auto& [worker, next] : h.orders) leased += next.lease.size();
  EXPECT_EQ(h.chief.ledger().leased(), leased) << "no sample is leased twice or lost";
}

TEST(Cancelling, Ignores_messages_of_a_cancelled_step) {
  ChiefDriver h = driver();
  const wire::Order order = h.orders.at(cid);
  ASSERT_TRUE(cancelled(h));
  const wire::Order again = h.orders.at(cid);
  const std::uint64_t counted_before = h.chief.ledger().counted();
  const std::uint64_t leased_before = h.chief.ledger().leased();
  h.say(cid, wire::Contributed{.worker = cid,
                               .step = order.step,
                               .base = order.version,
                               .report = {.samples = 10, .loss_sum = 1, .squared_norm = 1, .compute = from_seconds(1)}});
  EXPECT_TRUE(h.last.empty());
  for (const std::uint32_t server : {0U, 1U}) {
    h.step(Received{peer(ServerId{server}), wire::Gathered{ServerId{server}, cid, order.step}});
    EXPECT_TRUE(h.last.empty());
  }
  EXPECT_EQ(h.chief.ledger().counted(), counted_before);
  EXPECT_EQ(h.chief.ledger().leased(), leased_before);
  h.finish(cid);
  ASSERT_EQ(h.recorded<Completed>().size(), 1U);
  EXPECT_EQ(h.recorded<Completed>()[0].step, again.step) << "the step in its place counts";
}

}  // namespace
}  // namespace motley::protocol
