// The numbers of one stage, told by hand: which parameters each part sees, and what an update does.
#include "sim/pipeline_numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace motley::sim {
namespace {

using plan::Part;

/// Its gradient is what the test says; it remembers the values that each part was given.
struct Fake final : store::StageSource {
  store::Loss forward(std::uint64_t micro, std::span<const float> values, std::span<const std::uint32_t> samples, const Activation&,
                      Activation&) override {
    seen[micro] = values;
    at_forward[micro] = values[0];
    return {loss, 0, samples.size()};
  }
  void input_gradient(std::uint64_t, const Activation&, Activation&) override {}
  void weight_gradient(std::uint64_t micro, double scale, std::span<float> out) override {
    EXPECT_EQ(seen.at(micro)[0], at_forward.at(micro)) << "what forward used is still there";
    for (float& value : out) value += static_cast<float>(scale) * gradient;
  }
  std::map<std::uint64_t, std::span<const float>> seen;
  std::map<std::uint64_t, float> at_forward;
  float gradient = 1;
  double loss = 0.5;
};

constexpr double rate = 0.1, momentum = 0.5;

struct Driven {
  explicit Driven(plan::Schedule schedule) {
    auto source = std::make_unique<Fake>();
    fake = source.get();
    schedule.most_held = {3};
    policy::ScheduleSpec rates;
    rates.lr = rate;
    store::OptimizerSpec optimizer;
    optimizer.momentum = momentum;
    PipelineNumbersOptions options{.stages = {},
                                   .remake = {},
                                   .model_values = 2,
                                   .schedule = schedule,
                                   .rates = policy::Schedule(rates, 4, 100, 400),
                                   .optimizer = optimizer,
                                   .mini_batches = 100,
                                   .samples = 4,
                                   .global_batch = 4,
                                   .epoch_samples = 100,
                                   .seed = 1,
                                   .evaluate_every = 100,
                                   .evaluate = [](std::span<const float>) {
                                     return PipelineNumbers::Evaluation{true, 0.5, 1};
                                   }};
    PipelineNumbersOptions::Stage stage;
    stage.source = std::move(source);
    stage.pieces = {{0, 0, 2}};
    stage.values = {1, 1};
    stage.parameters = 2;
    options.stages.push_back(std::move(stage));
    numbers = std::make_unique<RealPipelineNumbers>(std::move(options));
  }
  void begin(std::uint64_t micro, std::uint32_t late = 0) {
    numbers->begun(0, micro, late);
    numbers->done(0, Part::forward, micro);
  }
  void end(std::uint64_t micro) {
    numbers->done(0, Part::input, micro);
    numbers->done(0, Part::weight, micro);
  }
  void mini(std::uint64_t n) {
    begin(n);
    end(n);
    numbers->committed(0, n);
  }
  Fake* fake = nullptr;
  std::unique_ptr<RealPipelineNumbers> numbers;
};

TEST(PipelineNumbers, AnUpdateIsTheOptimizers) {
  Driven driven({});
  driven.mini(0);
  EXPECT_FLOAT_EQ(driven.numbers->values()[0], 1 - 0.1F);
  driven.mini(1);
  EXPECT_FLOAT_EQ(driven.numbers->values()[0], 0.9F - 0.1F * 1.5F) << "with momentum";
}

TEST(PipelineNumbers, MicroBatchesAddUpToTheirMean) {
  plan::Schedule schedule;
  schedule.micro_batches = 3;  // of 1, 1 and 2 samples
  Driven driven(schedule);
  for (const std::uint64_t micro : {0U, 1U, 2U}) driven.begin(micro);
  driven.fake->gradient = 2;
  driven.end(0);
  driven.end(1);
  driven.fake->gradient = 4;
  driven.end(2);
  driven.numbers->committed(0, 0);
  EXPECT_FLOAT_EQ(driven.numbers->values()[0], 1 - 0.1F * 3);
}

TEST(PipelineNumbers, WhatAForwardUsedOutlivesTheUpdatesAfterIt) {
  Driven driven({});
  driven.begin(0);
  driven.begin(1, 1);
  driven.begin(2, 1);
  driven.end(0);
  driven.numbers->committed(0, 0);
  driven.end(1);
  driven.numbers->committed(0, 1);
  driven.end(2);  // the source itself looks whether its values are as they were
  EXPECT_EQ(driven.fake->at_forward[2], 1);
}

TEST(PipelineNumbers, AForwardThatRunsAheadUsesWhereMomentumWillHaveLed) {
  plan::Schedule schedule;
  schedule.predicts = true;
  Driven driven(schedule);
  driven.mini(0);
  driven.begin(1, 0);
  driven.begin(2, 1);
  EXPECT_FLOAT_EQ(driven.fake->at_forward[1], 0.9F);
  EXPECT_FLOAT_EQ(driven.fake->at_forward[2], 0.9F - 0.5F * 0.1F * 1);
}

TEST(PipelineNumbers, AGradientFarAboveItsMovingNormIsClipped) {
  plan::Schedule schedule;
  schedule.clips = true;
  Driven driven(schedule);
  driven.mini(0);
  const float before = driven.numbers->values()[0];
  driven.fake->gradient = 10;
  driven.mini(1);
  EXPECT_NEAR(driven.numbers->values()[0], before - 0.1 * (0.5 * 1 + 1.5), 1e-5) << "to one and a half times the norm";
}

TEST(PipelineNumbers, RatesAreLessWhereUpdatesComeLateUntilAQuarterIsOver) {
  plan::Schedule schedule;
  schedule.micro_batches = 2;
  schedule.softens = true;
  Driven driven(schedule);
  driven.begin(0);
  driven.begin(1);
  driven.end(0);
  driven.end(1);
  driven.numbers->committed(0, 0);
  EXPECT_NEAR(driven.numbers->values()[0], 1 - 0.1 / std::sqrt(2.0), 1e-6) << "three may be held, so both of two come late";
}

TEST(PipelineNumbers, ALossThatIsNotFiniteIsTheEnd) {
  Driven driven({});
  driven.mini(0);
  EXPECT_FALSE(driven.numbers->finished(0).diverged);
  driven.fake->loss = std::nan("");
  driven.mini(1);
  EXPECT_TRUE(driven.numbers->finished(1).diverged);
}

}  // namespace
}  // namespace motley::sim
