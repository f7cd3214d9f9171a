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
  Loss gradient(std::span<const float> at, std::span<const std::uint32_t> samples, std::span<float> out, Flow&) override {
    for (std::size_t i = 0; i < parameters; ++i) out[i] = at[i] - centre;
    out[parameters] = 1 + at[parameters] / 8;
    ++steps;
    return {1, 0, samples.size()};
  }
  Loss evaluate(std::span<const float>) override { return {}; }
  float centre = 1;
  int steps = 0;
};

/// Pieces that are there after so many steps.
class Scripted : public News {
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
  explicit Walk(const LocalModelOptions& made = options()) : model(made), global(values), samples(8), way(values) {
    std::iota(samples.begin(), samples.end(), 0U);
  }
  void round(std::uint32_t steps, bool fresh = true, bool late = false, double correction = 0.25) {
    (void)model.walk(source, {global, version, samples, steps, 0.5, fresh, late, correction, 1}, news, way, still);
  }
  Still still;
  Parabola source;
  Scripted news;
  LocalModel model;
  std::vector<float> global;
  Version version;
  std::vector<std::uint32_t> samples;
  std::vector<float> way;
};

TEST(LocalModel, TheWayIsWhatTheStepsChange) {
  Walk walk;
  walk.round(2);  // 0 -> .5 -> .75
  for (std::size_t i = 0; i < parameters; ++i) EXPECT_FLOAT_EQ(walk.way[i], 0.75F);
  EXPECT_FLOAT_EQ(walk.way[parameters], 2.125F) << "the statistic: 0 -> 1 -> 2.125";
}

TEST(LocalModel, ValuesThatLackNothingAreTakenAsTheyAre) {
  Walk walk;
  walk.round(2);
  walk.global.assign(values, 0.5F);
  walk.round(1);  // .5 -> .75
  EXPECT_FLOAT_EQ(walk.way[0], 0.25F);
}

TEST(LocalModel, WhereNothingNewHasComeTheWalkGoesOn) {
  Walk walk;
  walk.round(2);
  walk.round(1, false);  // .75 -> .875
  EXPECT_FLOAT_EQ(walk.way[0], 0.125F);
}

TEST(LocalModel, ValuesThatLackTheLastRoundKeepAllButTheCorrectionOfIt) {
  Walk walk;
  walk.round(2);                   // the way .75 is not in what comes next
  walk.global.assign(values, 0);   // nobody else has moved
  walk.round(1, true, true, 0.2);  // from 0 + .8 * .75 = .6
  EXPECT_FLOAT_EQ(walk.way[0], 0.2F) << "half of what was missing to 1";
}

TEST(LocalModel, StatisticsGiveNothingUp) {
  Walk walk;
  walk.round(2);                 // the statistic's way is 2.125
  walk.round(1, true, true, 1);  // all of it stays though of the parameters everything is given up
  EXPECT_FLOAT_EQ(walk.way[parameters], 1 + 2.125F / 8);
  EXPECT_FLOAT_EQ(walk.way[0], 0.5F) << "from 0 again";
}

TEST(LocalModel, WhatComesInMidRoundIsMergedThereAndTheWayStaysWhole) {
  Walk walk;
  walk.news.comes(1, 0, {0.4F, 0.4F});  // the first two values, after one of two steps
  walk.round(2, true, false, 0.5);
  // 0 -> .5; then .4 + .5*.5 = .65 -> .825: the way is .5 + .175.
  EXPECT_FLOAT_EQ(walk.way[0], 0.675F);
  EXPECT_FLOAT_EQ(walk.way[2], 0.75F) << "nothing has come for this one";
}

TEST(LocalModel, StatisticsAreMergedTooWithoutBeingDamped) {
  Walk walk;
  walk.news.comes(1, parameters, {7});
  walk.round(2, true, false, 0.5);  // 0 -> 1; then 7 + 1 = 8, which grows by 2
  EXPECT_FLOAT_EQ(walk.way[parameters], 3);
}

TEST(LocalModel, GivesUpBetweenTwoSteps) {
  struct Impatient : Flow {
    bool need(std::uint64_t, std::uint64_t) override { return false; }
    void made(std::uint64_t, std::uint64_t) override {}
  } impatient;
  Walk walk;
  (void)walk.model.walk(walk.source, {walk.global, {}, walk.samples, 8, 0.5, true, false, 0, 1}, walk.news, walk.way, impatient);
  EXPECT_EQ(walk.source.steps, 1);
}

TEST(LocalModel, WhatWasMergedInMidRoundIsNotMergedAgain) {
  Walk walk;
  walk.news.comes(1, 0, {0.4F, 0.4F});
  walk.round(2, true, false, 0.5);  // ends at .825 and, where nothing came, at .75
  walk.news = {};
  walk.global = {0.4F, 0.4F, 0.4F, 0.4F, 0};
  walk.round(1, true, true, 0.5);
  EXPECT_FLOAT_EQ(walk.way[0], (1 - 0.825F) / 2);
  EXPECT_FLOAT_EQ(walk.way[2], (1 - (0.4F + 0.375F)) / 2) << "came at the start of the next round";
}

TEST(LocalModel, MomentumIsDampedWhereValuesComeLateAndNowhereElse) {
  for (const bool late : {false, true}) {
    Walk walk(options(0.5));
    walk.source.centre = 0;  // at rest: only the momentum moves it
    walk.global.assign(values, 1);
    walk.round(1);                                   // v = 1, 1 -> .5
    walk.global.assign(values, late ? 0.4F : 0.0F);  // so that it stands at 0 either way
    walk.round(1, true, late, 0.2);
    // Standing at 0 the gradient is taken at -.25*v: v' = .5*v - .25*v = v/4, and the way is -v'/2.
    EXPECT_NEAR(walk.way[0], -(late ? 0.8F : 1.0F) / 8, 1e-6F);
  }
}

TEST(LocalModel, TellsHowFarTheGlobalValuesHaveMoved) {
  LocalModelOptions watching = options();
  watching.watches = true;
  Walk walk(watching);
  walk.round(1);
  EXPECT_EQ(walk.model.moved(), 0) << "there was nothing before";
  walk.global = {0.3F, 0.4F, 0, 0, 7};
  walk.version = Version{1};
  walk.round(1);
  EXPECT_NEAR(walk.model.moved(), 0.25, 1e-6) << "parameters alone";
  walk.version = Version{3};
  walk.round(1);
  EXPECT_EQ(walk.model.moved(), 0) << "that is more than one update";
}

TEST(LocalModel, AfterWhatIsNotFiniteItBeginsAtTheGlobalValuesWithoutMomentum) {
  Walk walk(options(0.5));
  walk.source.centre = std::numeric_limits<float>::quiet_NaN();
  walk.round(2);
  EXPECT_TRUE(std::isnan(walk.way[0]));
  walk.model.forget();
  walk.source.centre = 1;
  walk.round(1, false);
  EXPECT_FLOAT_EQ(walk.way[0], 0.5F);
}

// Two workers with unlike shards: one's parabola is around -1, the other's around 3. Where they take equally many steps, the mean of their
// minima is 1; with 4 steps and 1, ways weigh as 16 to 1.
TEST(LocalModel, WithTheControlVariateUnlikeShardsGoTheWayOfAll) {
  for (const std::uint32_t others : {4U, 1U}) {
    LocalModelOptions with = options();
    with.watches = with.variate = true;
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
        Walk* walk = w == 0 ? &a : &b;
        walk->global = global;
        walk->version = Version{round};
        (void)walk->model.walk(walk->source, {walk->global, walk->version, walk->samples, steps[w], 0.1, true, false, 0, mean_steps},
                               walk->news, walk->way, walk->still);
      }
      for (std::size_t i = 0; i < parameters; ++i) global[i] += static_cast<float>((4 * a.way[i] + others * b.way[i]) / all);
    }
    const double expected = (16 * -1.0 + others * others * 3.0) / (16 + others * others);
    EXPECT_NEAR(global[0], expected, 0.1) << "4 steps and " << others;
    if (others == 4) {
      EXPECT_LT(std::abs(a.way[0] - b.way[0]), 0.15) << "without it they part by 1.4 in each round";
    }
  }
}

/// A parabola whose device takes local steps by itself.
class FarParabola final : public Parabola, public LocalSteps {
 public:
  LocalSteps* local_steps() override { return this; }
  void begin(std::span<const float> at) override {
    model_.assign(at.begin(), at.end());
    newest_ = model_;
    momentum_.assign(parameters, 0);
    last_way_.assign(values, 0);
  }
  void put(std::uint64_t first, std::span<const float> at) override {
    remember(first, at);
    std::copy(at.begin(), at.end(), model_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  void put_late(std::uint64_t first, std::span<const float> at, double keeps) override {
    remember(first, at);
    for (std::size_t i = first; i < first + at.size(); ++i) {
      const auto kept = static_cast<float>(i < parameters ? keeps : 1);
      model_[i] = at[i - first] + kept * last_way_[i];
      if (i < parameters) momentum_[i] *= kept;
    }
  }
  void set_out() override {
    start_ = model_;
    loss_ = {};
  }
  void merge(std::uint64_t first, std::span<const float> at, double keeps) override {
    remember(first, at);
    for (std::size_t i = first; i < first + at.size(); ++i) {
      const auto kept = static_cast<float>(i < parameters ? keeps : 1);
      const float way = model_[i] - start_[i];
      model_[i] = at[i - first] + kept * way;
      start_[i] = model_[i] - way;
      if (i < parameters) momentum_[i] *= kept;
    }
  }
  void step(std::span<const std::uint32_t> samples, const Rule& rule) override {
    std::vector<float> ahead = model_;
    std::vector<float> made(values);
    for (std::size_t i = 0; i < parameters; ++i) ahead[i] -= static_cast<float>(rule.momentum * rule.rate) * momentum_[i];
    Still still;
    const Loss one = gradient(ahead, samples, made, still);
    loss_.sum += one.sum;
    loss_.samples += one.samples;
    for (std::size_t i = 0; i < parameters; ++i) {
      momentum_[i] = static_cast<float>(rule.momentum) * momentum_[i] + made[i] + static_cast<float>(rule.weight_decay) * model_[i];
      model_[i] -= static_cast<float>(rule.rate) * momentum_[i];
    }
    model_[parameters] += made[parameters];
  }
  Loss way(std::span<float> out, const Coding*) override {
    for (std::size_t i = 0; i < values; ++i) out[i] = last_way_[i] = model_[i] - start_[i];
    return loss_;
  }
  void watch() override {
    moved_ = 0;
    for (std::size_t i = 0; i < parameters && !watched_.empty(); ++i) moved_ += std::pow(static_cast<double>(newest_[i]) - watched_[i], 2);
    watched_ = newest_;
  }
  [[nodiscard]] double moved() const override { return moved_; }

 private:
  void remember(std::uint64_t first, std::span<const float> at) {
    std::copy(at.begin(), at.end(), newest_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  std::vector<float> model_, momentum_, start_, last_way_, newest_, watched_;
  double moved_ = 0;
  Loss loss_;
};

TEST(LocalModel, GoesTheSameWayWhereTheDeviceTakesTheSteps) {
  LocalModelOptions both = options(0.9);
  both.optimizer.weight_decay = 0.01;
  both.watches = true;
  LocalModel here(both);
  LocalModel there(both);
  Parabola near;
  FarParabola far;
  const std::vector<std::uint32_t> samples{1, 2, 3, 4, 5, 6, 7, 8};
  Still still;
  for (std::uint32_t round = 0; round < 8; ++round) {
    if (round == 6) {  // somebody else's from now on
      here.forget();
      there.forget();
    }
    std::vector<float> global(values);
    for (std::size_t i = 0; i < values; ++i) global[i] = 0.25F * static_cast<float>(round) + static_cast<float>(i);
    Scripted news;
    const auto next = [&](std::size_t i) { return global[i] + 0.25F; };
    if (round % 2 == 1) news.comes(2, 1, {next(1), next(2), next(3)});
    Round task{global, Version{round}, samples, 4, 0.1, round != 3, round > 1, 0.25, 4};
    std::vector<float> one(values), other(values);
    const Loss a = here.walk(near, task, news, one, still);
    const Loss b = there.walk(far, task, news, other, still);
    EXPECT_EQ(a.samples, b.samples);
    EXPECT_EQ(a.sum, b.sum);
    EXPECT_DOUBLE_EQ(here.moved(), there.moved());
    for (std::size_t i = 0; i < values; ++i) EXPECT_NEAR(one[i], other[i], 1e-5) << round << " " << i;
  }
  EXPECT_EQ(near.steps, far.steps);
}

}  // namespace
}  // namespace motley::store
