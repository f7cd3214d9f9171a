// Real numbers in virtual time, against sums done by hand: what workers see, what servers make of it, how long a contribution is kept.
#include "sim/real_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace motley::sim {
namespace {

constexpr std::uint64_t parameters = 3;
constexpr std::uint64_t values = 4;  // and one statistic

/// Gradient = parameter + number of the sample, mean over the samples; the statistic moves by 1. All exact in float.
class ByHand : public GradientSource {
 public:
  void initialize(std::uint64_t, std::span<float> out) override { std::fill(out.begin(), out.end(), 8.0F); }
  StepResult gradient(std::span<const float> at, std::span<const std::uint32_t> samples, std::span<float> out, StepIo&) override {
    seen.emplace_back(samples.begin(), samples.end());
    const float mean = std::accumulate(samples.begin(), samples.end(), 0.0F) / static_cast<float>(samples.size());
    for (std::size_t i = 0; i < parameters; ++i) out[i] = broken ? std::numeric_limits<float>::quiet_NaN() : at[i] + mean;
    out[parameters] = 1;
    return {static_cast<double>(mean), 0, samples.size()};
  }
  StepResult evaluate(std::span<const float> at) override { return {static_cast<double>(at[0]) * 2, 1, 2}; }
  std::vector<std::vector<std::uint32_t>> seen;
  bool broken = false;
};

RealNumbersOptions options(bool local_steps = false, std::uint32_t servers = 2) {
  const std::vector<store::TensorPlace> tensors{{0, parameters, TensorKind::parameter}, {parameters, 1, TensorKind::statistic}};
  RealNumbersOptions result;
  result.layout = store::cut(tensors, 2, servers);
  result.parameters = parameters;
  result.epoch_samples = 4;
  result.local_steps = local_steps;
  result.local_momentum = 0.5;
  return result;
}

wire::Order order(std::uint32_t worker, std::uint64_t step, std::uint64_t first, std::uint64_t last, std::uint32_t local_steps = 1) {
  wire::Order made{WorkerId{worker}, Step{step}, Step{}, Version{}, local_steps, 0.5, 32, {}, {}, 1, {}};
  made.lease.ranges.push_back({0, first, last});
  return made;
}

void snapshot_all(RealNumbers& numbers, std::uint32_t worker, double rho = 0, std::uint64_t step = 0) {
  for (std::uint32_t s = 0; s < 2; ++s) numbers.snapshot(ServerId{s}, {WorkerId{worker}, Step{step}, rho});
}
void commit_all(RealNumbers& numbers, const wire::Apply& update) {
  for (std::uint32_t s = 0; s < 2; ++s) numbers.commit(ServerId{s}, update);
}
std::vector<float> model(const RealNumbers& numbers) {
  std::vector<float> out(values);
  numbers.values(out);
  return out;
}

TEST(RealNumbers, TwoWorkersOfOneRoundMakeTheJoinedBatchsUpdate) {
  ByHand source;
  RealNumbers numbers(options(), source);
  for (std::uint32_t w = 0; w < 2; ++w) snapshot_all(numbers, w);
  EXPECT_TRUE(numbers.compute(order(0, 0, 0, 1), {}).finite);
  EXPECT_TRUE(numbers.compute(order(1, 0, 1, 4), {}).finite);
  commit_all(numbers, {Version{1}, wire::UpdateKind::gradient, 0.25, 0.5, 1, {{WorkerId{0}, Step{0}, 0.25}, {WorkerId{1}, Step{0}, 0.75}}});
  // The mean gradient over samples 0..3 is 8 + 1.5; v = 9.5; w = 8 - 0.25 * 9.5. The statistic moves by the weighted mean of 1 and 1.
  EXPECT_EQ(model(numbers), (std::vector<float>{5.625F, 5.625F, 5.625F, 9.0F}));
  // Each sample of the epoch once, in the epoch's order.
  std::vector<std::uint32_t> all = source.seen[0];
  all.insert(all.end(), source.seen[1].begin(), source.seen[1].end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(numbers.contributions_held(), 0U);
}

TEST(RealNumbers, AWorkerComputesOnItsSnapshotWhateverHappensMeanwhile) {
  ByHand source;
  RealNumbers numbers(options(), source);
  for (std::uint32_t w = 0; w < 2; ++w) snapshot_all(numbers, w);
  (void)numbers.compute(order(0, 0, 0, 4), {});
  commit_all(numbers, {Version{1}, wire::UpdateKind::gradient, 0.25, 0, 1, {{WorkerId{0}, Step{0}, 1}}});
  const StepReport late = numbers.compute(order(1, 0, 0, 4), {});
  EXPECT_DOUBLE_EQ(late.squared_norm, 3 * 9.5 * 9.5) << "at the 8 it was given, not at what the model is by now";
}

TEST(RealNumbers, ASnapshotLooksRhoAhead) {
  ByHand source;
  RealNumbers numbers(options(), source);
  snapshot_all(numbers, 0);
  (void)numbers.compute(order(0, 0, 0, 4), {});
  commit_all(numbers, {Version{1}, wire::UpdateKind::gradient, 0.25, 0.5, 1, {{WorkerId{0}, Step{0}, 1}}});
  snapshot_all(numbers, 0, 0.5);
  // w = 5.625, v = 9.5, so it is shown 5.625 - 0.5 * 0.25 * 9.5 = 4.4375; plus the mean sample 1.5.
  EXPECT_DOUBLE_EQ(numbers.compute(order(0, 1, 0, 4), {}).squared_norm, 3 * 5.9375 * 5.9375);
}

TEST(RealNumbers, LocalStepsSendTheChangeOfTheModelAndKeepTheirMomentum) {
  ByHand source;
  RealNumbers numbers(options(true), source);
  snapshot_all(numbers, 0);
  const StepReport first = numbers.compute(order(0, 0, 0, 4, 2), {});
  ASSERT_EQ(source.seen.size(), 2U);
  const double a = (source.seen[0][0] + source.seen[0][1]) / 2.0;
  const double b = (source.seen[1][0] + source.seen[1][1]) / 2.0;
  // Rate 0.5, momentum 0.5, Nesterov: v1 = 8 + a, w1 = 8 - v1/2; then the gradient one momentum step ahead, at w1 - v1/4.
  const double v1 = 8 + a;
  const double w1 = 8 - v1 / 2;
  const double v2 = 0.5 * v1 + (w1 - v1 / 4 + b);
  const double w2 = w1 - v2 / 2;
  EXPECT_NEAR(first.squared_norm, 3 * (w2 - 8) * (w2 - 8), 1e-4);
  commit_all(numbers, {Version{1}, wire::UpdateKind::delta, 0, 0, 1, {{WorkerId{0}, Step{0}, 1}}});
  EXPECT_NEAR(model(numbers)[0], w2, 1e-5);
  EXPECT_FLOAT_EQ(model(numbers)[parameters], 10) << "the statistic moved once per local step";

  snapshot_all(numbers, 0, 0, 1);
  wire::Order next = order(0, 1, 0, 4, 1);
  next.parameters = next.missing = Step{1};
  (void)numbers.compute(next, {});
  commit_all(numbers, {Version{2}, wire::UpdateKind::delta, 0, 0, 1, {{WorkerId{0}, Step{1}, 1}}});
  const double v3 = 0.5 * v2 + (w2 - v2 / 4 + 1.5);
  EXPECT_NEAR(model(numbers)[0], w2 - v3 / 2, 1e-4);
}

// A slice of the next pull that arrives during a round is merged at its local step, as in a computation by hand.
TEST(RealNumbers, MergesSlicesThatArriveDuringARound) {
  ByHand source;
  RealNumbers numbers(options(true), source);
  snapshot_all(numbers, 0);
  snapshot_all(numbers, 1);
  (void)numbers.compute(order(1, 0, 0, 2), {});
  commit_all(numbers, {Version{1}, wire::UpdateKind::delta, 0, 0, 1, {{WorkerId{1}, Step{0}, 1}}});
  snapshot_all(numbers, 0, 0, 1);
  wire::Order round = order(0, 0, 0, 4, 2);
  round.correction = 0.25;
  source.seen.clear();
  const double squared = numbers.compute(round, std::vector<ArrivedSlice>{{SliceId{0}, 1}}).squared_norm;

  struct Script : store::IncomingUpdates {
    std::span<const Piece> since(std::uint32_t) override { return pieces; }
    std::vector<Piece> pieces;
  } script;
  const store::Layout layout = options(true).layout;
  const std::vector<float> newer = model(numbers);
  script.pieces.push_back({layout.slices[0].offset, std::span(newer).subspan(layout.slices[0].offset, layout.slices[0].count)});
  store::LocalModel by_hand({{}, values, parameters, 0.5, false, false});
  const std::vector<float> start{8, 8, 8, 8};
  std::vector<std::uint32_t> samples;
  for (const auto& step : source.seen) samples.insert(samples.end(), step.begin(), step.end());
  std::vector<float> delta(values);
  NoStreaming still;
  (void)by_hand.run_round(source, {start, {}, samples, 2, 0.5, true, false, 0.25, 0}, script, delta, still);
  double expected = 0;
  for (std::size_t i = 0; i < parameters; ++i) expected += static_cast<double>(delta[i]) * delta[i];
  EXPECT_DOUBLE_EQ(squared, expected);
  script.pieces.clear();
  store::LocalModel without({{}, values, parameters, 0.5, false, false});
  (void)without.run_round(source, {start, {}, samples, 2, 0.5, true, false, 0.25, 0}, script, delta, still);
  double alone = 0;
  for (std::size_t i = 0; i < parameters; ++i) alone += static_cast<double>(delta[i]) * delta[i];
  EXPECT_NE(squared, alone) << "it made a difference";
}

TEST(RealNumbers, AWorkerWhoseStepBrokeComputesNumbersAgain) {
  ByHand source;
  RealNumbers numbers(options(true), source);
  snapshot_all(numbers, 0);
  source.broken = true;
  EXPECT_FALSE(numbers.compute(order(0, 0, 0, 4, 2), {}).finite);
  numbers.free(WorkerId{0}, Step{0});
  source.broken = false;
  snapshot_all(numbers, 0);
  EXPECT_TRUE(numbers.compute(order(0, 1, 0, 4, 2), {}).finite) << "what broke must not live on in its momentum";
}

TEST(RealNumbers, AContributionIsKeptUntilEveryServerHasCommittedIt) {
  ByHand source;
  RealNumbers numbers(options(), source);
  snapshot_all(numbers, 0);
  (void)numbers.compute(order(0, 0, 0, 4), {});
  const wire::Apply update{Version{1}, wire::UpdateKind::gradient, 0.25, 0, 1, {{WorkerId{0}, Step{0}, 1}}};
  numbers.commit(ServerId{0}, update);
  EXPECT_EQ(numbers.contributions_held(), 1U);
  numbers.commit(ServerId{1}, update);
  EXPECT_EQ(numbers.contributions_held(), 0U);
}

TEST(RealNumbers, OnlyWhatIsCompleteOutlivesItsWorker) {
  ByHand source;
  RealNumbers numbers(options(), source);
  for (std::uint32_t w = 0; w < 2; ++w) {
    snapshot_all(numbers, w);
    (void)numbers.compute(order(w, 0, 0, 4), {});
  }
  numbers.completed(WorkerId{0}, Step{0});
  numbers.forget(WorkerId{0});
  numbers.forget(WorkerId{1});
  EXPECT_EQ(numbers.contributions_held(), 1U);
  commit_all(numbers, {Version{1}, wire::UpdateKind::gradient, 0.25, 0, 1, {{WorkerId{0}, Step{0}, 1}}});
  EXPECT_EQ(numbers.contributions_held(), 0U);
}

TEST(RealNumbers, WhoIsForgottenComputesForNobody) {
  ByHand source;
  RealNumbers numbers(options(), source);
  snapshot_all(numbers, 0);
  numbers.forget(WorkerId{0});
  snapshot_all(numbers, 0);
  (void)numbers.compute(order(0, 0, 0, 4), {});
  EXPECT_TRUE(source.seen.empty());
  EXPECT_EQ(numbers.contributions_held(), 0U);
}

TEST(RealNumbers, AnEvaluationWaitsForTheLastServer) {
  ByHand source;
  RealNumbers numbers(options(), source);
  EXPECT_FALSE(numbers.exported(ServerId{1}, Version{0}));
  const auto evaluation = numbers.exported(ServerId{0}, Version{0});
  ASSERT_TRUE(evaluation);
  EXPECT_DOUBLE_EQ(evaluation->loss, 8);
  EXPECT_DOUBLE_EQ(evaluation->accuracy, 0.5);
}

}  // namespace
}  // namespace motley::sim
