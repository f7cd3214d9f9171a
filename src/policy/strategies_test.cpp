// The table of strategies: names, what each promises, which knobs each takes, and what a wrong word is answered.
#include "policy/strategies.h"

#include <gtest/gtest.h>

#include <boost/mp11.hpp>
#include <set>

#include "policy/lr_schedule.h"

#include "policy/small_chief_for_tests.h"

namespace motley::policy {
namespace {

std::string refusal(const StrategySpec& spec) {
  const auto strategy = make_strategy(spec, {});
  return strategy ? "taken" : strategy.error().message;
}

Knobs knobs(void (*set)(Knobs&)) {
  Knobs result;
  set(result);
  return result;
}

TEST(Strategies, TheBaselinesAreThere) {
  const auto names = strategy_names();
  const std::set<std::string_view> known(names.begin(), names.end());
  EXPECT_EQ(known.size(), names.size()) << "a name is given once";
  for (const auto* name : {"bsp", "lb-bsp", "asp", "asp-look", "ssp", "dssp", "local-sgd", "hps"})
    EXPECT_TRUE(known.contains(name)) << name;
}

TEST(Strategies, EachDescribesItsRuleGuaranteeAndCost) {
  ASSERT_EQ(presets().size(), strategy_names().size());
  for (const Preset& preset : presets()) {
    EXPECT_FALSE(preset.rule.empty()) << preset.name;
    EXPECT_FALSE(preset.guarantee.empty()) << preset.name;
    EXPECT_FALSE(preset.cost.empty()) << preset.name;
  }
}

TEST(Strategies, EachIsMadeByItsNameAlone) {
  for (const std::string_view name : strategy_names()) EXPECT_EQ(refusal({std::string(name), {}, {}}), "taken");
}

TEST(Strategies, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const std::string message = refusal({"bps", {}, {}});
  EXPECT_NE(message.find("\"bps\""), std::string::npos) << message;
  for (const std::string_view name : strategy_names()) EXPECT_NE(message.find(name), std::string::npos) << message;
}

struct Stray {
  std::string strategy;
  std::string knob;
  Knobs knobs;
  std::string takes;
};

TEST(Strategies, AKnobThatIsNotTakenIsRefusedByName) {
  const std::vector<Stray> strays{
      {"bsp", "steps", knobs([](Knobs& k) { k.steps = 16; }), "bits, lookahead, clip, momentum, lr"},
      {"bsp", "replan", knobs([](Knobs& k) { k.replan = 5; }), "bits, lookahead, clip, momentum, lr"},
      {"asp", "bound", knobs([](Knobs& k) { k.bound = 3; }), "bits, lookahead, clip, momentum, lr"},
      {"ssp", "bound_max", knobs([](Knobs& k) { k.bound_max = 9; }), "bound, bits, lookahead, clip, momentum, lr"},
      {"local-sgd", "lookahead", knobs([](Knobs& k) { k.lookahead = 2; }), "steps, clip, momentum, lr"},
      {"lb-bsp", "bound", knobs([](Knobs& k) { k.bound = 0; }), "replan, bits, lookahead, clip, momentum, lr"},
  };
  for (const Stray& stray : strays)
    EXPECT_EQ(refusal({stray.strategy, stray.knobs, {}}), "strategy \"" + stray.strategy + "\": " + stray.knob + ": found a knob that " +
                                                              stray.strategy + " does not take, expected one of " + stray.takes);
}

TEST(Strategies, KnobsThatAreTakenAreTaken) {
  const Knobs common = knobs([](Knobs& k) { k.clip = 2, k.momentum = 0.5, k.lr = 0.1; });
  for (const std::string_view name : strategy_names()) EXPECT_EQ(refusal({std::string(name), common, {}}), "taken") << name;
  EXPECT_EQ(refusal({"ssp", knobs([](Knobs& k) { k.bound = 0; }), {}}), "taken");
  EXPECT_EQ(refusal({"dssp", knobs([](Knobs& k) { k.bound = 2, k.bound_max = 2; }), {}}), "taken");
  EXPECT_EQ(refusal({"lb-bsp", knobs([](Knobs& k) { k.replan = 1; }), {}}), "taken");
}

TEST(Strategies, BoundsOfDsspThatCrossAreRefused) {
  EXPECT_EQ(refusal({"dssp", knobs([](Knobs& k) { k.bound = 5, k.bound_max = 4; }), {}}),
            "strategy \"dssp\": bound_max: found 4, expected at least 5, which is bound");
  EXPECT_EQ(refusal({"dssp", knobs([](Knobs& k) { k.bound_max = 2; }), {}}),
            "strategy \"dssp\": bound_max: found 2, expected at least 3, which is the preset of bound");
  EXPECT_EQ(refusal({"dssp", knobs([](Knobs& k) { k.bound = 16; }), {}}),
            "strategy \"dssp\": bound: found 16, expected at most 15, which is the preset of bound_max; or set bound_max as well");
}

TEST(Strategies, KnobsReplaceThePresets) {
  const JobFacts job{128, 0.9};
  const auto bsp = make_strategy({"bsp", {}, {}}, job);
  EXPECT_DOUBLE_EQ(bsp->momentum(), 0.9);
  EXPECT_DOUBLE_EQ(bsp->rho(WorkerId{0}), 0.9) << "Nesterov's method looks one term ahead";
  EXPECT_DOUBLE_EQ(make_strategy({"asp-look", {}, {}}, job)->rho(WorkerId{0}), look_ahead(0.9, 4));
  const auto heavy_ball = make_strategy({"bsp", knobs([](Knobs& k) { k.lookahead = 0, k.momentum = 0.5; }), {}}, job);
  EXPECT_DOUBLE_EQ(heavy_ball->momentum(), 0.5);
  EXPECT_DOUBLE_EQ(heavy_ball->rho(WorkerId{0}), 0);
}

TEST(Strategies, LocalStepsSendDeltasWithoutLookAhead) {
  for (const std::string_view name : strategy_names()) {
    auto strategy = make_strategy({std::string(name), {}, {}}, {});
    Decisions decisions;
    strategy->joined({}, std::vector<WorkerProfile>{{.worker = {0}}}, decisions);
    const bool local = name == "local-sgd" || name == "multistep";
    EXPECT_EQ(strategy->payload(), local ? Payload::delta : Payload::gradient) << name;
    EXPECT_EQ(strategy->rho(WorkerId{0}) == 0, local) << name;
  }
}

TEST(Strategies, LocalStepsMultiplyTheSamplesOfAnOrder) {
  auto strategy = make_strategy({"local-sgd", knobs([](Knobs& k) { k.steps = 16; }), {}}, {64, 0.9});
  const std::vector<WorkerProfile> two{{.worker = {0}}, {.worker = {1}}};
  Decisions decisions;
  strategy->joined({}, two, decisions);
  EXPECT_EQ(strategy->plan(WorkerId{0}).local_steps, 16U);
  EXPECT_EQ(strategy->plan(WorkerId{0}).samples, 16U * 32U);
}

TEST(Strategies, MemoryLimitsEachLocalStepNotTheRound) {
  auto strategy = make_strategy({"local-sgd", knobs([](Knobs& k) { k.steps = 16; }), {}}, {64, 0.9});
  const std::vector<WorkerProfile> two{{.worker = {0}, .device = {.max_batch = 10}}, {.worker = {1}}};
  Decisions decisions;
  strategy->joined({}, two, decisions);
  EXPECT_EQ(strategy->plan(WorkerId{0}).samples, 16U * 10U);
  EXPECT_EQ(strategy->plan(WorkerId{1}).samples, 16U * 54U);
}

TEST(Strategies, FixedBatchesReplaceAnyBatchingPolicy) {
  for (const std::string_view name : strategy_names()) {
    auto strategy = make_strategy({std::string(name), {}, {40, 24}}, {64, 0.9});
    const std::vector<WorkerProfile> two{{.worker = {0}}, {.worker = {1}}};
    Decisions decisions;
    strategy->joined({}, two, decisions);
    const Plan plan = strategy->plan(WorkerId{1});
    EXPECT_EQ(plan.samples, 24 * plan.local_steps) << name;
  }
}

TEST(Why, EveryReasonHasASentence) {
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<Why>>(
      [](auto reason) { EXPECT_FALSE(sentence(reason.value).empty()) << reason.name; });
}

/// hps in the middle of training, with transfers longer than computation: its overlap, and the bits of the first worker.
std::pair<std::uint32_t, Bits> overlap_and_bits_of_hps(const std::vector<bool>& free_transfers, bool warms_up) {
  SmallChief chief(make_strategy({"hps", {}, {}}, {.global_batch = 32, .warms_up = warms_up}).value(), 6400);
  for (const bool each : free_transfers) chief.join(1, 0, each);
  for (int i = 0; i < 100; ++i) {
    chief.pass(from_seconds(0.005));
    const auto busy = chief.busy();
    for (const auto& [worker, tasks] : busy) chief.finish(worker);
  }
  return {chief.strategy().overlap(), chief.strategy().plan(WorkerId{0}).bits};
}

TEST(Strategies, FreeTransfersUseAllBitsAndNoOverlapAfterWarmUp) {
  for (const bool warms_up : {false, true}) {
    EXPECT_EQ(overlap_and_bits_of_hps({false}, warms_up).first, 1U);
    EXPECT_NE(overlap_and_bits_of_hps({false}, warms_up).second, Bits{});
    EXPECT_EQ(overlap_and_bits_of_hps({true}, warms_up).first, warms_up ? 0U : 1U);
    EXPECT_EQ(overlap_and_bits_of_hps({true}, warms_up).second, Bits{});
    EXPECT_EQ(overlap_and_bits_of_hps({true, false}, warms_up).first, 1U) << "one of them is far";
  }
}

TEST(Strategies, StepsOfModelsThatNormalizeOverTheirBatchAreWhole) {
  for (const std::string kind : {"hps", "adaptive", "grouped"})
    for (const bool whole : {false, true}) {
      SmallChief chief(make_strategy({kind, {}, {}}, {.global_batch = 32, .whole_steps = whole}).value(), 10'000);
      chief.join(2);
      Rng rng(1, "whole steps");
      for (int i = 0; i < 40; ++i) {
        chief.pass(from_seconds(0.05 + 0.1 * rng.uniform()));
        chief.finish(any_of(chief.busy(), rng).first);
      }
      const bool limited = chief.strategy().plan(WorkerId{0}).time_limit.limit > Duration{0};
      EXPECT_EQ(limited, !whole) << kind;
    }
}

}  // namespace
}  // namespace motley::policy
