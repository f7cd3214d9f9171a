// Guarantees of every strategy: present idle workers are released, each contribution is applied once, and training goes on while there is
// work and a worker. Workers join, finish, fail and leave in seeded orders.
#include <gtest/gtest.h>

#include <algorithm>

#include "policy/small_chief_for_tests.h"

namespace motley::policy {
namespace {

constexpr std::uint32_t global_batch = 48;
constexpr std::uint64_t all_samples = 6000;
constexpr std::uint64_t seeds = 25;

class StrategyLaw : public testing::TestWithParam<std::string_view> {
 protected:
  static SmallChief chief() {
    auto strategy = make_strategy({std::string(GetParam()), {}, {}}, {global_batch, 0.9});
    return {std::move(strategy).value(), all_samples};
  }

  /// Memory for any number of samples, in half of all cases for few.
  static std::uint32_t some_limit(Rng& rng) { return rng.below(2) == 0 ? 0 : 1 + static_cast<std::uint32_t>(rng.below(global_batch)); }

  /// Joins, finishes, refusals and leaves in random order; then the remaining workers finish all samples. SmallChief checks that no order
  /// exceeds a worker's memory.
  static SmallChief whole_training(std::uint64_t seed) {
    Rng rng(seed, "strategy law");
    SmallChief chief = StrategyLaw::chief();
    for (std::uint64_t groups = 1 + rng.below(3); groups > 0; --groups)
      chief.join(1 + static_cast<std::uint32_t>(rng.below(3)), some_limit(rng));
    for (int i = 0; i < 400 && !HasFatalFailure(); ++i) {
      chief.pass(from_seconds(0.1 * rng.uniform()));
      const std::uint64_t dice = rng.below(100);
      if (dice < 85 && !chief.busy().empty())
        chief.finish(any_of(chief.busy(), rng).first);
      else if (dice < 90 && !chief.busy().empty())
        chief.refuse(any_of(chief.busy(), rng).first);
      else if (dice < 95 && !chief.present().empty())
        chief.leave(any_of(chief.present(), rng));
      else if (chief.present().size() < 9)
        chief.join(1 + static_cast<std::uint32_t>(rng.below(2)), some_limit(rng));
    }
    if (chief.present().empty()) chief.join(1);
    finish_everything(chief, rng);
    return chief;
  }
};

TEST_P(StrategyLaw, EverySampleIsAppliedOnceUnderMembershipChanges) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    EXPECT_EQ(whole_training(seed).applied_samples(), all_samples);
  }
}

TEST_P(StrategyLaw, TheSameEventsGiveTheSameDecisions) {
  const std::string log = whole_training(7).log();
  EXPECT_GT(log.size(), 1000U);
  EXPECT_EQ(log, whole_training(7).log());
}

TEST_P(StrategyLaw, BatchesOfTheLiveWorkersMakeTheGlobalBatch) {
  Rng rng(3, "batches");
  SmallChief chief = StrategyLaw::chief();
  chief.join(3);
  for (int i = 0; i < 200; ++i) {
    chief.pass(from_seconds(0.01 + rng.uniform()));
    chief.finish(any_of(chief.busy(), rng).first);
    if (i % 40 == 10) chief.join(1);
    if (i % 40 == 30) chief.leave(any_of(chief.present(), rng));
    std::uint64_t sum = 0;
    bool in_rounds = false;
    for (const WorkerId worker : chief.present()) {
      const Plan plan = chief.strategy().plan(worker);
      sum += plan.samples / plan.local_steps;
      in_rounds = in_rounds || plan.local_steps > 1;
    }
    if (in_rounds && GetParam() == "multistep")  // its local batches may be larger, and are evened out
      EXPECT_GE(5 * sum, 3 * global_batch) << "after " << i << " contributions";
    else
      EXPECT_EQ(sum, global_batch) << "after " << i << " contributions";
    if (chief.busy().empty()) break;
  }
}

TEST_P(StrategyLaw, TheBatchIsAsLargeAsMemoryAllows) {
  Rng rng(8, "limits");
  for (int round = 0; round < 20; ++round) {
    SmallChief chief = StrategyLaw::chief();
    std::uint64_t room = 0;
    for (int i = 0; i < 5; ++i) {
      const std::uint32_t limit = some_limit(rng);
      room += limit == 0 ? global_batch : limit;
      chief.join(1, limit);
    }
    for (int i = 0; i < 30; ++i) {
      chief.pass(from_seconds(0.01 + rng.uniform()));
      chief.finish(any_of(chief.busy(), rng).first);
    }
    std::uint64_t sum = 0;
    bool in_rounds = false;
    for (const WorkerId worker : chief.present()) {
      const Plan plan = chief.strategy().plan(worker);
      sum += plan.samples / plan.local_steps;
      in_rounds = in_rounds || plan.local_steps > 1;
    }
    if (in_rounds) continue;  // each local step has a batch of its own
    EXPECT_EQ(sum, std::min<std::uint64_t>(room, global_batch)) << "round " << round;
  }
}

TEST_P(StrategyLaw, MoreWorkersThanSamplesInABatchStillGetOneEach) {
  SmallChief chief = StrategyLaw::chief();
  chief.join(global_batch + 5);
  Rng rng(4, "many workers");
  finish_everything(chief, rng);
  EXPECT_EQ(chief.applied_samples(), all_samples);
}

TEST_P(StrategyLaw, AnUpdateWeighsByItsSamples) {
  const SmallChief chief = whole_training(11);
  for (const auto& [weight, share] : chief.updates()) EXPECT_NEAR(weight, share, 1e-12);
}

TEST_P(StrategyLaw, LosingAllWorkersLosesNoSamples) {
  Rng rng(5, "everyone dies");
  SmallChief chief = StrategyLaw::chief();
  chief.join(4);
  for (int i = 0; i < 10; ++i) chief.finish(any_of(chief.busy(), rng).first);
  while (!chief.present().empty()) chief.leave(any_of(chief.present(), rng));
  chief.join(1);
  finish_everything(chief, rng);
  EXPECT_EQ(chief.applied_samples(), all_samples);
}

TEST_P(StrategyLaw, IdleWorkersAreReleasedWhenWorkReturns) {
  Rng rng(6, "work comes back");
  SmallChief chief = StrategyLaw::chief();
  chief.join(4);
  while (chief.busy().size() == 4) chief.finish(any_of(chief.busy(), rng).first);
  // Some rest now, or wait for the round; those that still work die with their samples.
  while (!chief.busy().empty() && chief.present().size() > 1) chief.leave(chief.busy().begin()->first);
  finish_everything(chief, rng);
  EXPECT_EQ(chief.applied_samples(), all_samples);
}

INSTANTIATE_TEST_SUITE_P(All, StrategyLaw, testing::ValuesIn(strategy_names().begin(), strategy_names().end()), [](const auto& strategy) {
  std::string name(strategy.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace motley::policy
