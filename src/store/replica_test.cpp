// A worker's step in pieces: cut by a pace or by lack of memory, it leaves the mean over what was done, and is told once.
#include "store/replica.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "base/check.h"
#include "base/rng.h"

namespace motley::store {
namespace {

using Floats = std::vector<float>;
constexpr std::size_t values = 40;
constexpr std::size_t parameters = 36;

/// Each sample has a gradient of its own; the mean is made in doubles, the later half of the values first, as a backward pass does.
class Source final : public GradientSource {
 public:
  std::uint64_t memory = 1000;      // samples
  std::vector<std::size_t> pieces;  // that were asked for

  void initialize(std::uint64_t, std::span<float>) override {}
  StepResult gradient(std::span<const float> at, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) override {
    pieces.push_back(samples.size());
    if (samples.size() > memory) throw OutOfMemory("too many");
    StepResult loss;
    if (!io.wait_for(0, values)) return loss;
    std::vector<double> sum(values);
    for (const std::uint32_t sample : samples) {
      Rng rng(sample, "sample");
      for (std::size_t i = 0; i < values; ++i) sum[i] += at[i] + rng.normal();
      loss.loss_sum += rng.uniform();
      loss.correct += rng.below(2);
      ++loss.samples;
    }
    for (const auto& [first, last] : {std::pair<std::size_t, std::size_t>{values / 2, values}, {0, values / 2}}) {
      for (std::size_t i = first; i < last; ++i) out[i] = static_cast<float>(sum[i] / static_cast<double>(samples.size()));
      io.gradient_ready(first, last);
    }
    return loss;
  }
  StepResult evaluate(std::span<const float>) override { return {}; }
};

/// Remembers what was final when.
class Listener final : public StepIo {
 public:
  explicit Listener(const Floats& watched) : out(watched) {}
  const Floats& out;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> recorded;
  Floats as_told = Floats(values);
  int needs = 0;
  std::optional<int> patience;  // gives up after so many needs

  bool wait_for(std::uint64_t, std::uint64_t) override { return !patience || needs++ < *patience; }
  void gradient_ready(std::uint64_t first, std::uint64_t last) override {
    recorded.emplace_back(first, last);
    for (std::uint64_t i = first; i < last; ++i) as_told[i] = out[i];
  }
};

/// Pieces of these sizes, then whatever is left; the last one may end the step.
class Cuts final : public MicroBatcher {
 public:
  Cuts(std::vector<std::uint64_t> sizes, bool ends) : sizes_(std::move(sizes)), ends_(ends) {}
  Piece next(std::uint64_t done, std::uint64_t left) override {
    calls.emplace_back(done, left);
    if (at_ == sizes_.size()) return {left, true};
    const std::uint64_t size = sizes_[at_++];
    return {size, ends_ && at_ == sizes_.size()};
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> calls;

 private:
  std::vector<std::uint64_t> sizes_;
  bool ends_;
  std::size_t at_ = 0;
};

std::vector<std::uint32_t> twenty() {
  std::vector<std::uint32_t> samples(20);
  for (std::uint32_t i = 0; i < 20; ++i) samples[i] = 100 + i;
  return samples;
}

ReplicaOptions options() {
  ReplicaOptions result;
  result.values = values;
  result.parameters = parameters;
  return result;
}

struct Step {
  Source source;
  Replica replica{options()};
  Floats at = Floats(values, 0.5F);
  Floats out = Floats(values, std::numeric_limits<float>::quiet_NaN());  // the former contents must not matter
  std::vector<std::uint32_t> samples = twenty();
  Listener listener{out};

  StepReport run(MicroBatcher& batcher) { return replica.contribute(source, {at, samples}, out, listener, batcher); }
  StepReport run() {
    SingleBatch single_batch;
    return run(single_batch);
  }
};

/// The gradient itself, over the first `count` samples.
struct Plain {
  explicit Plain(std::size_t count = 20) {
    Source source;
    NoStreaming no_streaming;
    loss = source.gradient(Floats(values, 0.5F), std::span<const std::uint32_t>(samples).first(count), out, no_streaming);
  }
  std::vector<std::uint32_t> samples = twenty();
  Floats out = Floats(values);
  StepResult loss;
};

void expect_close(const Floats& found, const Floats& expected) {
  for (std::size_t i = 0; i < values; ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << "value " << i;
}

/// All of it, once, and final when it was told.
void expect_reported_once(const Step& step) {
  using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  EXPECT_EQ(step.listener.recorded, (Ranges{{values / 2, values}, {0, values / 2}}));
  EXPECT_EQ(step.listener.as_told, step.out);
}

TEST(Pieces, OnePieceLeavesTheBitsOfTheGradientItself) {
  Step step;
  const StepReport report = step.run();
  const Plain whole;
  EXPECT_EQ(step.out, whole.out);
  EXPECT_EQ(report.loss_sum, whole.loss.loss_sum);
  EXPECT_EQ(report.samples, 20U);
  EXPECT_EQ(report.max_batch, 0U);
  EXPECT_TRUE(report.finite);
  double squared = 0;
  for (std::size_t i = 0; i < parameters; ++i) squared += static_cast<double>(whole.out[i]) * whole.out[i];
  EXPECT_DOUBLE_EQ(report.squared_norm, squared);
  EXPECT_EQ(step.source.pieces, (std::vector<std::size_t>{20}));
  expect_reported_once(step);
}

TEST(Pieces, APaceThatCutsLeavesTheMeanOfTheWhole) {
  Step step;
  Cuts cuts({7, 1, 7}, false);
  const StepReport report = step.run(cuts);
  const Plain whole;
  expect_close(step.out, whole.out);
  EXPECT_EQ(report.samples, 20U);
  EXPECT_NEAR(report.loss_sum, whole.loss.loss_sum, 1e-12);
  EXPECT_EQ(step.source.pieces, (std::vector<std::size_t>{7, 1, 7, 5}));
  EXPECT_EQ(cuts.calls, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 20}, {7, 13}, {8, 12}, {15, 5}}));
  expect_reported_once(step);
}

TEST(Pieces, AnyCutLeavesTheMeanOfWhatWasDone) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, "cuts");
    std::vector<std::uint64_t> sizes;
    std::uint64_t done = 0;
    while (done < 20 && (sizes.empty() || rng.below(5) > 0)) {
      sizes.push_back(1 + rng.below(20 - done));
      done += sizes.back();
    }
    Step step;
    Cuts cuts(sizes, true);
    EXPECT_EQ(step.run(cuts).samples, done);
    expect_close(step.out, Plain(done).out);
    expect_reported_once(step);
  }
}

TEST(Pieces, AnEarlyEndIsTheMeanOverTheFirstSamples) {
  Step step;
  Cuts cuts({4, 6}, true);
  const StepReport report = step.run(cuts);
  expect_close(step.out, Plain(10).out);
  EXPECT_EQ(report.samples, 10U);
  expect_reported_once(step);

  Step single_batch;
  Cuts one({10}, true);
  EXPECT_EQ(single_batch.run(one).samples, 10U);
  EXPECT_EQ(single_batch.out, Plain(10).out) << "one piece, the same bits";
}

TEST(Pieces, WhatDoesNotFitIsHalvedUntilItDoesAndNextTimeBeginsSmall) {
  Step step;
  step.source.memory = 6;
  const StepReport first = step.run();
  EXPECT_EQ(step.source.pieces, (std::vector<std::size_t>{20, 10, 5, 5, 5, 5}));
  EXPECT_EQ(first.samples, 20U) << "the whole lease all the same";
  EXPECT_EQ(first.max_batch, 5U);
  expect_close(step.out, Plain().out);
  expect_reported_once(step);

  step.source.pieces.clear();
  step.listener.recorded.clear();
  const StepReport second = step.run();
  EXPECT_EQ(step.source.pieces, (std::vector<std::size_t>{5, 5, 5, 5}));
  EXPECT_EQ(second.max_batch, 0U) << "that is no news";
  expect_close(step.out, Plain().out);
  expect_reported_once(step);
}

TEST(Pieces, MemoryMayRunOutInAnyPiece) {
  Step step;
  step.source.memory = 5;
  Cuts cuts({3, 9}, false);
  const StepReport report = step.run(cuts);
  EXPECT_EQ(report.samples, 20U);
  EXPECT_EQ(report.max_batch, 4U);
  EXPECT_EQ(step.source.pieces, (std::vector<std::size_t>{3, 9, 4, 4, 4, 4, 1}));
  expect_close(step.out, Plain().out);
  expect_reported_once(step);
}

TEST(Pieces, ASingleSampleThatDoesNotFitIsTheEnd) {
  Step step;
  step.source.memory = 0;
  EXPECT_THROW(step.run(), OutOfMemory);
  EXPECT_EQ(step.source.pieces.back(), 1U);
  EXPECT_TRUE(step.listener.recorded.empty());
}

TEST(Pieces, WhereItIsForbiddenNothingIsCutToFit) {
  Step step;
  ReplicaOptions whole = options();
  whole.splits_on_out_of_memory = false;
  step.replica = Replica(whole);
  step.source.memory = 19;
  EXPECT_THROW(step.run(), OutOfMemory);
  EXPECT_EQ(step.source.pieces, (std::vector<std::size_t>{20}));
}

TEST(Pieces, LocalStepsAreNotCutToFit) {
  Step step;
  ReplicaOptions local = options();
  local.local_steps = true;
  step.replica = Replica(local);
  step.source.memory = 19;
  NoIncomingUpdates incoming;
  EXPECT_THROW(
      (void)step.replica.contribute(step.source, LocalRound{.values = step.at, .samples = step.samples}, incoming, step.out, step.listener),
      OutOfMemory);
}

TEST(Pieces, WhoIsToldToGiveUpStopsAfterThePieceAtHand) {
  Step step;
  step.listener.patience = 3;  // its values, whether to go on, the second piece's values
  Cuts cuts({4, 4, 4, 4}, false);
  (void)step.run(cuts);
  EXPECT_EQ(step.source.pieces, (std::vector<std::size_t>{4, 4}));
  EXPECT_TRUE(step.listener.recorded.empty());
}

/// On a device, which counts its gradient itself and leaves bytes.
class GradientEncoding final : public GradientSource {
 public:
  double squared_norm = 1;
  void initialize(std::uint64_t, std::span<float>) override {}
  StepResult gradient(std::span<const float>, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) override {
    io.encoded_gradient_ready(0, out.size());
    StepResult loss;
    loss.samples = samples.size();
    loss.squared_norm = squared_norm;
    loss.encoded = true;
    return loss;
  }
  StepResult evaluate(std::span<const float>) override { return {}; }
};

TEST(Replica, AGradientThatIsNoNumberIsRefusedThoughItWasCodedAndIsNobodysBug) {
  GradientEncoding source;
  Replica replica({.optimizer = {}, .values = values, .parameters = parameters});
  const Floats at(values);
  const std::vector<std::uint32_t> samples{1, 2};
  Floats out(values);  // bytes, that happen to be good floats
  NoStreaming no_streaming;
  EXPECT_TRUE(replica.contribute(source, {at, samples}, out, no_streaming).finite);
  for (const double odd : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    source.squared_norm = odd;
    EXPECT_FALSE(replica.contribute(source, {at, samples}, out, no_streaming).finite) << odd;
  }
  source.squared_norm = -1;
  EXPECT_THROW(replica.contribute(source, {at, samples}, out, no_streaming), Bug) << "who codes counts what it codes";
}

}  // namespace
}  // namespace motley::store
