#include "store/local_model.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace motley::store {
namespace {

constexpr std::size_t parameters = 4;
constexpr std::size_t values = 5;  // and one statistic

/// The gradient of a parabola around 1, the same for every sample; the statistic grows by one and an eighth of itself with each step.
class Parabola : public GradientSource {
 public:
  void initialize(std::uint64_t, std::span<float> out) override { std::fill(out.begin(), out.end(), 0.0F); }
  StepResult gradient(std::span<const float> at, std::span<const std::uint32_t> samples, std::span<float> out, StepIo&) override {
    for (std::size_t i = 0; i < parameters; ++i) out[i] = at[i] - centre;
    out[parameters] = 1 + at[parameters] / 8;
    ++steps;
    return {1, 0, samples.size()};
  }
  StepResult evaluate(std::span<const float>) override { return {}; }
  float centre = 1;
  int steps = 0;
};

/// Pieces that are there after so many steps.
class Scripted : public IncomingUpdates {
 public:
  void comes(std::uint32_t after, std::uint64_t first, std::vector<float> piece) { script_.push_back({after, first, std::move(piece)}); }
  std::span<const Piece> since(std::uint32_t done) override {
    pieces_.clear();
    for (const Line& line : script_)
      if (line.after == done) pieces_.push_back({line.first, line.piece});
    return pieces_;
  }

 private:
  struct Line {
    std::uint32_t after;
    std::uint64_t first;
    std::vector<float> piece;
  };
  std::vector<Line> script_;
  std::vector<Piece> pieces_;
};

LocalModelOptions options(double momentum = 0) {
  LocalModelOptions made;
  made.values = values;
  made.parameters = parameters;
  made.momentum = momentum;
  return made;
}

/// One worker's rounds, by hand.
struct Walk {
  explicit Walk(const LocalModelOptions& made = options()) : model(made), global(values), samples(8), delta(values) {
    std::iota(samples.begin(), samples.end(), 0U);
  }
  void round(std::uint32_t steps, bool fresh = true, bool late = false, double correction = 0.25) {
    (void)model.run_round(source, {global, version, samples, steps, 0.5, fresh, late, correction, 1}, incoming, delta, no_streaming);
  }
  NoStreaming no_streaming;
  Parabola source;
  Scripted incoming;
  LocalModel model;
  std::vector<float> global;
  Version version;
  std::vector<std::uint32_t> samples;
  std::vector<float> delta;
};

TEST(LocalModel, TheWayIsWhatTheStepsChange) {
  Walk run_round;
  run_round.round(2);  // 0 -> .5 -> .75
  for (std::size_t i = 0; i < parameters; ++i) EXPECT_FLOAT_EQ(run_round.delta[i], 0.75F);
  EXPECT_FLOAT_EQ(run_round.delta[parameters], 2.125F) << "the statistic: 0 -> 1 -> 2.125";
}

TEST(LocalModel, ValuesThatLackNothingAreTakenAsTheyAre) {
  Walk run_round;
  run_round.round(2);
  run_round.global.assign(values, 0.5F);
  run_round.round(1);  // .5 -> .75
  EXPECT_FLOAT_EQ(run_round.delta[0], 0.25F);
}

TEST(LocalModel, WhereNothingNewHasComeTheWalkGoesOn) {
  Walk run_round;
  run_round.round(2);
  run_round.round(1, false);  // .75 -> .875
  EXPECT_FLOAT_EQ(run_round.delta[0], 0.125F);
}

TEST(LocalModel, ValuesThatLackTheLastRoundKeepAllButTheCorrectionOfIt) {
  Walk run_round;
  run_round.round(2);                   // the way .75 is not in what comes next
  run_round.global.assign(values, 0);   // nobody else has moved
  run_round.round(1, true, true, 0.2);  // from 0 + .8 * .75 = .6
  EXPECT_FLOAT_EQ(run_round.delta[0], 0.2F) << "half of what was missing to 1";
}

TEST(LocalModel, StatisticsGiveNothingUp) {
  Walk run_round;
  run_round.round(2);                 // the statistic's way is 2.125
  run_round.round(1, true, true, 1);  // all of it stays though of the parameters everything is given up
  EXPECT_FLOAT_EQ(run_round.delta[parameters], 1 + 2.125F / 8);
  EXPECT_FLOAT_EQ(run_round.delta[0], 0.5F) << "from 0 again";
}

TEST(LocalModel, WhatComesInMidRoundIsMergedThereAndTheWayStaysWhole) {
  Walk run_round;
  run_round.incoming.comes(1, 0, {0.4F, 0.4F});  // the first two values, after one of two steps
  run_round.round(2, true, false, 0.5);
  // 0 -> .5; then .4 + .5*.5 = .65 -> .825: the way is .5 + .175.
  EXPECT_FLOAT_EQ(run_round.delta[0], 0.675F);
  EXPECT_FLOAT_EQ(run_round.delta[2], 0.75F) << "nothing has come for this one";
}

TEST(LocalModel, StatisticsAreMergedTooWithoutBeingDamped) {
  Walk run_round;
  run_round.incoming.comes(1, parameters, {7});
  run_round.round(2, true, false, 0.5);  // 0 -> 1; then 7 + 1 = 8, which grows by 2
  EXPECT_FLOAT_EQ(run_round.delta[parameters], 3);
}

TEST(LocalModel, GivesUpBetweenTwoSteps) {
  struct Impatient : StepIo {
    bool wait_for(std::uint64_t, std::uint64_t) override { return false; }
    void gradient_ready(std::uint64_t, std::uint64_t) override {}
  } impatient;
  Walk run_round;
  (void)run_round.model.run_round(run_round.source, {run_round.global, {}, run_round.samples, 8, 0.5, true, false, 0, 1},
                                  run_round.incoming, run_round.delta, impatient);
  EXPECT_EQ(run_round.source.steps, 1);
}

TEST(LocalModel, WhatWasMergedInMidRoundIsNotMergedAgain) {
  Walk run_round;
  run_round.incoming.comes(1, 0, {0.4F, 0.4F});
  run_round.round(2, true, false, 0.5);  // ends at .825 and, where nothing came, at .75
  run_round.incoming = {};
  run_round.global = {0.4F, 0.4F, 0.4F, 0.4F, 0};
  run_round.round(1, true, true, 0.5);
  EXPECT_FLOAT_EQ(run_round.delta[0], (1 - 0.825F) / 2);
  EXPECT_FLOAT_EQ(run_round.delta[2], (1 - (0.4F + 0.375F)) / 2) << "came at the start of the next round";
}

TEST(LocalModel, MomentumIsDampedWhereValuesComeLateAndNowhereElse) {
  for (const bool late : {false, true}) {
    Walk run_round(options(0.5));
    run_round.source.centre = 0;  // at rest: only the momentum moves it
    run_round.global.assign(values, 1);
    run_round.round(1);                                   // v = 1, 1 -> .5
    run_round.global.assign(values, late ? 0.4F : 0.0F);  // so that it stands at 0 either way
    run_round.round(1, true, late, 0.2);
    // Standing at 0 the gradient is taken at -.25*v: v' = .5*v - .25*v = v/4, and the way is -v'/2.
    EXPECT_NEAR(run_round.delta[0], -(late ? 0.8F : 1.0F) / 8, 1e-6F);
  }
}

TEST(LocalModel, TellsHowFarTheGlobalValuesHaveMoved) {
  LocalModelOptions watching = options();
  watching.tracks_updates = true;
  Walk run_round(watching);
  run_round.round(1);
  EXPECT_EQ(run_round.model.update_norm(), 0) << "there was nothing before";
  run_round.global = {0.3F, 0.4F, 0, 0, 7};
  run_round.version = Version{1};
  run_round.round(1);
  EXPECT_NEAR(run_round.model.update_norm(), 0.25, 1e-6) << "parameters alone";
  run_round.version = Version{3};
  run_round.round(1);
  EXPECT_EQ(run_round.model.update_norm(), 0) << "that is more than one update";
}

TEST(LocalModel, AfterWhatIsNotFiniteItBeginsAtTheGlobalValuesWithoutMomentum) {
  Walk run_round(options(0.5));
  run_round.source.centre = std::numeric_limits<float>::quiet_NaN();
  run_round.round(2);
  EXPECT_TRUE(std::isnan(run_round.delta[0]));
  run_round.model.forget();
  run_round.source.centre = 1;
  run_round.round(1, false);
  EXPECT_FLOAT_EQ(run_round.delta[0], 0.5F);
}

// Two workers with unlike shards: one's parabola is around -1, the other's around 3. Where they take equally many steps, the mean of their
// minima is 1; with 4 steps and 1, ways weigh as 16 to 1.
TEST(LocalModel, WithTheControlVariateUnlikeShardsGoTheWayOfAll) {
  for (const std::uint32_t others : {4U, 1U}) {
    LocalModelOptions with = options();
    with.tracks_updates = with.control_variate = true;
    Walk a(with);
    Walk b(with);
    a.source.centre = -1;
    b.source.centre = 3;
    const std::array<std::uint32_t, 2> steps{4, others};
    const double all = 4 + others;
    const double mean_steps = (16 + others * others) / all;
    std::vector<float> global(values, 5);
    for (std::uint64_t round = 0; round < 300; ++round) {
      for (std::size_t w = 0; w < 2; ++w) {
        Walk* run_round = w == 0 ? &a : &b;
        run_round->global = global;
        run_round->version = Version{round};
        (void)run_round->model.run_round(
            run_round->source, {run_round->global, run_round->version, run_round->samples, steps[w], 0.1, true, false, 0, mean_steps},
            run_round->incoming, run_round->delta, run_round->no_streaming);
      }
      for (std::size_t i = 0; i < parameters; ++i) global[i] += static_cast<float>((4 * a.delta[i] + others * b.delta[i]) / all);
    }
    const double expected = (16 * -1.0 + others * others * 3.0) / (16 + others * others);
    EXPECT_NEAR(global[0], expected, 0.1) << "4 steps and " << others;
    if (others == 4) {
      EXPECT_LT(std::abs(a.delta[0] - b.delta[0]), 0.15) << "without it they part by 1.4 in each round";
    }
  }
}

/// A parabola whose device takes local steps by itself.
class FarParabola final : public Parabola, public LocalSgd {
 public:
  LocalSgd* local_sgd() override { return this; }
  void begin(std::span<const float> at) override {
    model_.assign(at.begin(), at.end());
    newest_ = model_;
    momentum_.assign(parameters, 0);
    last_delta_.assign(values, 0);
  }
  void put(std::uint64_t first, std::span<const float> at) override {
    remember(first, at);
    std::copy(at.begin(), at.end(), model_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  void put_stale(std::uint64_t first, std::span<const float> at, double kept_fraction) override {
    remember(first, at);
    for (std::size_t i = first; i < first + at.size(); ++i) {
      const auto kept = static_cast<float>(i < parameters ? kept_fraction : 1);
      model_[i] = at[i - first] + kept * last_delta_[i];
      if (i < parameters) momentum_[i] *= kept;
    }
  }
  void begin_round() override {
    start_ = model_;
    loss_ = {};
  }
  void merge(std::uint64_t first, std::span<const float> at, double kept_fraction) override {
    remember(first, at);
    for (std::size_t i = first; i < first + at.size(); ++i) {
      const auto kept = static_cast<float>(i < parameters ? kept_fraction : 1);
      const float delta = model_[i] - start_[i];
      model_[i] = at[i - first] + kept * delta;
      start_[i] = model_[i] - delta;
      if (i < parameters) momentum_[i] *= kept;
    }
  }
  void step(std::span<const std::uint32_t> samples, const Rule& rule) override {
    std::vector<float> ahead = model_;
    std::vector<float> made(values);
    for (std::size_t i = 0; i < parameters; ++i) ahead[i] -= static_cast<float>(rule.momentum * rule.rate) * momentum_[i];
    NoStreaming no_streaming;
    const StepResult one = gradient(ahead, samples, made, no_streaming);
    loss_.loss_sum += one.loss_sum;
    loss_.samples += one.samples;
    for (std::size_t i = 0; i < parameters; ++i) {
      momentum_[i] = static_cast<float>(rule.momentum) * momentum_[i] + made[i] + static_cast<float>(rule.weight_decay) * model_[i];
      model_[i] -= static_cast<float>(rule.rate) * momentum_[i];
    }
    model_[parameters] += made[parameters];
  }
  StepResult delta(std::span<float> out, const GradientEncoding*) override {
    for (std::size_t i = 0; i < values; ++i) out[i] = last_delta_[i] = model_[i] - start_[i];
    return loss_;
  }
  void watch() override {
    update_norm_ = 0;
    for (std::size_t i = 0; i < parameters && !watched_.empty(); ++i)
      update_norm_ += std::pow(static_cast<double>(newest_[i]) - watched_[i], 2);
    watched_ = newest_;
  }
  [[nodiscard]] double update_norm() const override { return update_norm_; }

 private:
  void remember(std::uint64_t first, std::span<const float> at) {
    std::copy(at.begin(), at.end(), newest_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  std::vector<float> model_, momentum_, start_, last_delta_, newest_, watched_;
  double update_norm_ = 0;
  StepResult loss_;
};

TEST(LocalModel, GoesTheSameWayWhereTheDeviceTakesTheSteps) {
  LocalModelOptions both = options(0.9);
  both.optimizer.weight_decay = 0.01;
  both.tracks_updates = true;
  LocalModel here(both);
  LocalModel there(both);
  Parabola shared_memory;
  FarParabola far;
  const std::vector<std::uint32_t> samples{1, 2, 3, 4, 5, 6, 7, 8};
  NoStreaming no_streaming;
  for (std::uint32_t round = 0; round < 8; ++round) {
    if (round == 6) {  // somebody else's from now on
      here.forget();
      there.forget();
    }
    std::vector<float> global(values);
    for (std::size_t i = 0; i < values; ++i) global[i] = 0.25F * static_cast<float>(round) + static_cast<float>(i);
    Scripted incoming;
    const auto next = [&](std::size_t i) { return global[i] + 0.25F; };
    if (round % 2 == 1) incoming.comes(2, 1, {next(1), next(2), next(3)});
    LocalRound task{global, Version{round}, samples, 4, 0.1, round != 3, round > 1, 0.25, 4};
    std::vector<float> one(values), other(values);
    const StepResult a = here.run_round(shared_memory, task, incoming, one, no_streaming);
    const StepResult b = there.run_round(far, task, incoming, other, no_streaming);
    EXPECT_EQ(a.samples, b.samples);
    EXPECT_EQ(a.loss_sum, b.loss_sum);
    EXPECT_DOUBLE_EQ(here.update_norm(), there.update_norm());
    for (std::size_t i = 0; i < values; ++i) EXPECT_NEAR(one[i], other[i], 1e-5) << round << " " << i;
  }
  EXPECT_EQ(shared_memory.steps, far.steps);
}

}  // namespace
}  // namespace motley::store
