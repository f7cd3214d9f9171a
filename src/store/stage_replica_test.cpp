// One pipeline stage: which parameters each pass uses, and the result of updates.
#include "store/stage_replica.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace motley::store {
namespace {

/// Returns the gradient that the test sets; records the values that each pass was given.
struct Fake final : StageSource {
  StepResult forward(std::uint64_t micro, std::span<const float> values, std::span<const std::uint32_t> samples, const Activation&,
                     Activation&) override {
    seen[micro] = values;
    read.insert(read.end(), samples.begin(), samples.end());
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
  std::vector<std::uint32_t> read;
  float gradient = 1;
  double loss = 0.5;
};

constexpr double rate = 0.1, momentum = 0.5;

struct Driven {
  explicit Driven(StageReplicaOptions options) {
    auto source = std::make_unique<Fake>();
    fake = source.get();
    options.optimizer.momentum = momentum;
    options.parameters = 2;
    options.samples = options.global_batch = 4;
    options.epoch_samples = 100;
    options.reads_samples = true;
    StagePart part;
    part.values = {1, 1};
    replica = std::make_unique<StageReplica>(options, std::move(source), std::move(part));
  }
  void begin(std::uint64_t micro, std::uint32_t late = 0) {
    replica->begin(micro, late, rate);
    Activation output;
    replica->forward(micro, {}, output);
  }
  void end(std::uint64_t micro) {
    Activation gradient;
    replica->input_gradient(micro, {}, gradient);
    replica->weight_gradient(micro);
  }
  void mini(std::uint64_t n) {
    begin(n);
    end(n);
    replica->commit(n, rate);
  }
  [[nodiscard]] float value() const { return (*replica->values())[0]; }
  Fake* fake = nullptr;
  std::unique_ptr<StageReplica> replica;
};

TEST(StageReplica, AnUpdateAppliesTheOptimizer) {
  Driven driven({});
  driven.mini(0);
  EXPECT_FLOAT_EQ(driven.value(), 1 - 0.1F);
  driven.mini(1);
  EXPECT_FLOAT_EQ(driven.value(), 0.9F - 0.1F * 1.5F) << "with momentum";
}

TEST(StageReplica, MicroBatchesAreAveraged) {
  StageReplicaOptions options;
  options.micro_batches = 3;  // of 1, 1 and 2 samples
  Driven driven(options);
  for (const std::uint64_t micro : {0U, 1U, 2U}) driven.begin(micro);
  driven.fake->gradient = 2;
  driven.end(0);
  driven.end(1);
  driven.fake->gradient = 4;
  driven.end(2);
  driven.replica->commit(0, rate);
  EXPECT_FLOAT_EQ(driven.value(), 1 - 0.1F * 3);
}

TEST(StageReplica, ValuesOfAForwardOutliveLaterUpdates) {
  Driven driven({});
  driven.begin(0);
  driven.begin(1, 1);
  driven.begin(2, 1);
  driven.end(0);
  driven.replica->commit(0, rate);
  driven.end(1);
  driven.replica->commit(1, rate);
  driven.end(2);  // the source checks that the values are those of the forward
  EXPECT_EQ(driven.fake->at_forward[2], 1);
}

TEST(StageReplica, AForwardThatRunsAheadUsesPredictedWeights) {
  StageReplicaOptions options;
  options.predicts = true;
  Driven driven(options);
  driven.mini(0);
  driven.begin(1, 0);
  driven.begin(2, 1);
  EXPECT_FLOAT_EQ(driven.fake->at_forward[1], 0.9F);
  EXPECT_FLOAT_EQ(driven.fake->at_forward[2], 0.9F - 0.5F * 0.1F * 1);
}

TEST(StageReplica, AGradientFarAboveItsMovingNormIsClipped) {
  StageReplicaOptions options;
  options.clips = true;
  Driven driven(options);
  driven.mini(0);
  const float before = driven.value();
  driven.fake->gradient = 10;
  driven.mini(1);
  EXPECT_NEAR(driven.value(), before - 0.1 * (0.5 * 1 + 1.5), 1e-5) << "to one and a half times the norm";
}

TEST(StageReplica, AnotherProcessContinuesExactlyFromItsPart) {
  Driven one({});
  one.mini(0);
  StageReplicaOptions options;
  options.optimizer.momentum = momentum;
  options.parameters = 2;
  options.samples = options.global_batch = 4;
  options.epoch_samples = 100;
  StageReplica other(options, std::make_unique<Fake>(), one.replica->part());
  other.begin(1, 0, rate);
  Activation none;
  other.forward(1, {}, none);
  other.weight_gradient(1);
  other.commit(1, rate);
  one.mini(1);
  EXPECT_EQ((*other.values())[0], one.value());
}

TEST(StageReplica, CountsOldVersions) {
  Driven driven({});
  driven.begin(0);
  driven.begin(1, 1);
  EXPECT_EQ(driven.replica->old_versions(), 0U);
  driven.end(0);
  driven.replica->commit(0, rate);
  driven.begin(2);
  EXPECT_EQ(driven.replica->kept(), 2U);
  EXPECT_EQ(driven.replica->old_versions(), 1U);
}

TEST(StageReplica, EverySampleOfAnEpochIsReadOnce) {
  constexpr std::uint64_t total = 250;  // two and a half epochs, in mini-batches of 4
  StageReplicaOptions options;
  options.micro_batches = 3;
  options.total_samples = total;
  Driven driven(options);
  const Batching batching{total, 4, 3};
  for (std::uint64_t micro = 0; micro < batching.micro_batches(); ++micro) {
    driven.begin(micro);
    driven.end(micro);
  }
  const auto& read = driven.fake->read;
  ASSERT_EQ(read.size(), total);
  for (std::size_t first = 0; first < total; first += 100) {
    const std::size_t last = std::min<std::size_t>(first + 100, total);
    const std::set<std::uint32_t> once(read.begin() + static_cast<std::ptrdiff_t>(first), read.begin() + static_cast<std::ptrdiff_t>(last));
    EXPECT_EQ(once.size(), last - first) << "epoch " << first / 100;
  }
}

TEST(StageReplica, ASmallerMiniBatchHasLessWeight) {
  StageReplicaOptions options;
  options.total_samples = 5;  // one of 4 samples, one of 1
  Driven driven(options);
  driven.mini(0);
  driven.mini(1);
  EXPECT_FLOAT_EQ(driven.value(), 0.9F - 0.1F * (0.25F + 0.5F)) << "a quarter of its gradient, and momentum";
}

}  // namespace
}  // namespace motley::store
