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
constexpr std::size_t values = 5;  // plus one statistic

/// Gradients of a parabola around 1, the same for every sample; each step adds 1 + an eighth of itself to the statistic.
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

/// Delivers pieces after given numbers of steps.
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

/// Runs the rounds of one worker.
struct LocalWorker {
  explicit LocalWorker(const LocalModelOptions& made = options()) : model(made), global(values), samples(8), delta(values) {
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

TEST(LocalModel, TheDeltaIsTheChangeOfTheSteps) {
  LocalWorker worker;
  worker.round(2);  // 0 -> .5 -> .75
  for (std::size_t i = 0; i < parameters; ++i) EXPECT_FLOAT_EQ(worker.delta[i], 0.75F);
  EXPECT_FLOAT_EQ(worker.delta[parameters], 2.125F) << "the statistic: 0 -> 1 -> 2.125";
}

TEST(LocalModel, UpToDateValuesReplaceTheModel) {
  LocalWorker worker;
  worker.round(2);
  worker.global.assign(values, 0.5F);
  worker.round(1);  // .5 -> .75
  EXPECT_FLOAT_EQ(worker.delta[0], 0.25F);
}

TEST(LocalModel, ContinuesWithoutNewValues) {
  LocalWorker worker;
  worker.round(2);
  worker.round(1, false);  // .75 -> .875
  EXPECT_FLOAT_EQ(worker.delta[0], 0.125F);
}

TEST(LocalModel, LateValuesKeepTheDeltaButTheCorrection) {
  LocalWorker worker;
  worker.round(2);                   // the delta .75 is not in the next global values
  worker.global.assign(values, 0);   // no other worker contributed
  worker.round(1, true, true, 0.2);  // from 0 + .8 * .75 = .6
  EXPECT_FLOAT_EQ(worker.delta[0], 0.2F) << "half of the distance to 1";
}

TEST(LocalModel, StatisticsKeepTheirWholeDelta) {
  LocalWorker worker;
  worker.round(2);                 // the statistic's delta is 2.125
  worker.round(1, true, true, 1);  // the statistic keeps its delta, the parameters drop theirs
  EXPECT_FLOAT_EQ(worker.delta[parameters], 1 + 2.125F / 8);
  EXPECT_FLOAT_EQ(worker.delta[0], 0.5F) << "starts from 0 again";
}

TEST(LocalModel, MergesDuringARoundAndKeepsTheWholeDelta) {
  LocalWorker worker;
  worker.incoming.comes(1, 0, {0.4F, 0.4F});  // the first two values, after one of two steps
  worker.round(2, true, false, 0.5);
  // 0 -> .5; then .4 + .5*.5 = .65 -> .825: the delta is .5 + .175.
  EXPECT_FLOAT_EQ(worker.delta[0], 0.675F);
  EXPECT_FLOAT_EQ(worker.delta[2], 0.75F) << "no newer value arrived";
}

TEST(LocalModel, StatisticsAreMergedWithoutCorrection) {
  LocalWorker worker;
  worker.incoming.comes(1, parameters, {7});
  worker.round(2, true, false, 0.5);  // 0 -> 1; then 7 + 1 = 8, which grows by 2
  EXPECT_FLOAT_EQ(worker.delta[parameters], 3);
}

TEST(LocalModel, StopsBetweenStepsWhenAbandoned) {
  struct Impatient : StepIo {
    bool wait_for(std::uint64_t, std::uint64_t) override { return false; }
    void gradient_ready(std::uint64_t, std::uint64_t) override {}
  } impatient;
  LocalWorker worker;
  (void)worker.model.run_round(worker.source, {worker.global, {}, worker.samples, 8, 0.5, true, false, 0, 1}, worker.incoming, worker.delta,
                               impatient);
  EXPECT_EQ(worker.source.steps, 1);
}

TEST(LocalModel, MergedValuesAreNotMergedAgain) {
  LocalWorker worker;
  worker.incoming.comes(1, 0, {0.4F, 0.4F});
  worker.round(2, true, false, 0.5);  // ends at .825 and, without a merge, at .75
  worker.incoming = {};
  worker.global = {0.4F, 0.4F, 0.4F, 0.4F, 0};
  worker.round(1, true, true, 0.5);
  EXPECT_FLOAT_EQ(worker.delta[0], (1 - 0.825F) / 2);
  EXPECT_FLOAT_EQ(worker.delta[2], (1 - (0.4F + 0.375F)) / 2) << "merged at the start of the next round";
}

TEST(LocalModel, MomentumIsScaledOnlyForLateValues) {
  for (const bool late : {false, true}) {
    LocalWorker worker(options(0.5));
    worker.source.centre = 0;  // zero gradient: only the momentum moves it
    worker.global.assign(values, 1);
    worker.round(1);                                   // v = 1, 1 -> .5
    worker.global.assign(values, late ? 0.4F : 0.0F);  // so that the model is at 0 in both cases
    worker.round(1, true, late, 0.2);
    // At 0 the gradient is taken at -.25*v: v' = .5*v - .25*v = v/4, and the delta is -v'/2.
    EXPECT_NEAR(worker.delta[0], -(late ? 0.8F : 1.0F) / 8, 1e-6F);
  }
}

TEST(LocalModel, ReportsTheNormOfTheGlobalUpdate) {
  LocalModelOptions watching = options();
  watching.tracks_updates = true;
  LocalWorker worker(watching);
  worker.round(1);
  EXPECT_EQ(worker.model.update_norm(), 0) << "there is no earlier version";
  worker.global = {0.3F, 0.4F, 0, 0, 7};
  worker.version = Version{1};
  worker.round(1);
  EXPECT_NEAR(worker.model.update_norm(), 0.25, 1e-6) << "of parameters only";
  worker.version = Version{3};
  worker.round(1);
  EXPECT_EQ(worker.model.update_norm(), 0) << "a version was skipped";
}

TEST(LocalModel, StartsOverAfterAStepThatIsNotFinite) {
  LocalWorker worker(options(0.5));
  worker.source.centre = std::numeric_limits<float>::quiet_NaN();
  worker.round(2);
  EXPECT_TRUE(std::isnan(worker.delta[0]));
  worker.model.forget();
  worker.source.centre = 1;
  worker.round(1, false);
  EXPECT_FLOAT_EQ(worker.delta[0], 0.5F);
}

// Two workers with different shards: one parabola is around -1, the other around 3. With equally many steps each, the mean of their
// minima is 1; with 4 steps and 1, their deltas weigh 16 to 1.
TEST(LocalModel, TheControlVariateCorrectsForUnequalShards) {
  for (const std::uint32_t others : {4U, 1U}) {
    LocalModelOptions with = options();
    with.tracks_updates = with.control_variate = true;
    LocalWorker a(with);
    LocalWorker b(with);
    a.source.centre = -1;
    b.source.centre = 3;
    const std::array<std::uint32_t, 2> steps{4, others};
    const double all = 4 + others;
    const double mean_steps = (16 + others * others) / all;
    std::vector<float> global(values, 5);
    for (std::uint64_t round = 0; round < 300; ++round) {
      for (std::size_t w = 0; w < 2; ++w) {
        LocalWorker* worker = w == 0 ? &a : &b;
        worker->global = global;
        worker->version = Version{round};
        (void)worker->model.run_round(worker->source,
                                      {worker->global, worker->version, worker->samples, steps[w], 0.1, true, false, 0, mean_steps},
                                      worker->incoming, worker->delta, worker->no_streaming);
      }
      for (std::size_t i = 0; i < parameters; ++i) global[i] += static_cast<float>((4 * a.delta[i] + others * b.delta[i]) / all);
    }
    const double expected = (16 * -1.0 + others * others * 3.0) / (16 + others * others);
    EXPECT_NEAR(global[0], expected, 0.1) << "4 steps and " << others;
    if (others == 4) {
      EXPECT_LT(std::abs(a.delta[0] - b.delta[0]), 0.15) << "without it they differ by 1.4 in each round";
    }
  }
}

/// A parabola with a LocalSgd.
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

TEST(LocalModel, LocalStepsOnADeviceGiveTheSameDelta) {
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
    if (round == 6) {  // the model belongs to a new member from now on
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
