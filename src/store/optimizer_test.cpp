// The update rules against a scalar reference in double.
#include <gtest/gtest.h>

#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "store/optimizer.h"

namespace motley::store {
namespace {

std::vector<float> normals(Rng& rng, std::size_t n) {
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(rng.normal());
  return out;
}

/// Reference for one value of either optimizer, in double.
struct Reference {
  OptimizerSpec spec;
  double w{}, first{}, second{};
  int updates = 0;

  void update(double g, double rate, double momentum) {
    ++updates;
    if (spec.kind == OptimizerKind::sgd) {
      first = momentum * first + g + spec.weight_decay * w;
      w -= rate * first;
    } else {
      first = spec.beta1 * first + (1 - spec.beta1) * g;
      second = spec.beta2 * second + (1 - spec.beta2) * g * g;
      w -= rate * (direction() + spec.weight_decay * w);
    }
  }
  [[nodiscard]] double direction() const {
    if (spec.kind == OptimizerKind::sgd) return first;
    const double m = first / (1 - std::pow(spec.beta1, updates));
    const double u = second / (1 - std::pow(spec.beta2, updates));
    return m / (std::sqrt(u) + spec.epsilon);
  }
};

class OptimizerLaw : public testing::TestWithParam<OptimizerSpec> {};

TEST_P(OptimizerLaw, MatchesTheReferenceForManyUpdates) {
  constexpr std::size_t n = 37;  // not a multiple of any vector width
  Rng rng(1, "twin");
  std::vector<float> weights = normals(rng, n);
  Optimizer optimizer(GetParam(), n);
  std::vector<Reference> expected(n);
  for (std::size_t i = 0; i < n; ++i) expected[i] = {.spec = GetParam(), .w = weights[i]};

  for (int t = 0; t < 200; ++t) {
    const auto gradient = normals(rng, n);
    const double rate = t < 10 ? 0.001 * t : 0.01;
    const double momentum = t % 3 == 0 ? 0.5 : 0.9;
    optimizer.update(weights, gradient, rate, momentum);
    for (std::size_t i = 0; i < n; ++i) expected[i].update(gradient[i], rate, momentum);
  }
  std::vector<float> ahead(n);
  optimizer.look_ahead(weights, 1.71, 0.01, ahead);
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_NEAR(weights[i], expected[i].w, 2e-5);
    EXPECT_NEAR(ahead[i], expected[i].w - 1.71 * 0.01 * expected[i].direction(), 2e-5);
  }
  EXPECT_EQ(optimizer.updates(), 200U);
}

TEST_P(OptimizerLaw, PiecesInAnyOrderGiveTheSameBits) {
  constexpr std::size_t n = 1000;
  Rng rng(2, "pieces");
  const auto initial = normals(rng, n);
  std::vector<float> whole = initial, pieces = initial;
  Optimizer single_batch(GetParam(), n), piecewise(GetParam(), n);
  for (int t = 0; t < 5; ++t) {
    const auto gradient = normals(rng, n);
    single_batch.update(whole, gradient, 0.02, 0.9);
    piecewise.begin_update();
    const std::size_t seam = rng.below(n + 1);
    for (auto [first, last] : {std::pair{seam, n}, std::pair{std::size_t{0}, seam}})
      piecewise.update_piece(first, std::span(pieces).subspan(first, last - first), std::span(gradient).subspan(first, last - first), 0.02,
                             0.9);
  }
  EXPECT_EQ(whole, pieces);
  std::vector<float> ahead(n), ahead_in_pieces(n);
  single_batch.look_ahead(whole, 0.9, 0.02, ahead);
  for (std::size_t first = 0; first < n; first += 250)
    piecewise.look_ahead(std::span(pieces).subspan(first, 250), 0.9, 0.02, std::span(ahead_in_pieces).subspan(first, 250), first);
  EXPECT_EQ(ahead, ahead_in_pieces);
}

TEST_P(OptimizerLaw, DoesNotLookAheadBeforeTheFirstUpdate) {
  const std::vector<float> weights{1, -2, 3};
  std::vector<float> ahead(3);
  Optimizer(GetParam(), 3).look_ahead(weights, 5, 0.1, ahead);
  EXPECT_EQ(ahead, weights);
}

TEST_P(OptimizerLaw, RejectsSpansOfTheWrongSize) {
  Optimizer optimizer(GetParam(), 3);
  std::vector<float> weights(3), gradient(4);
  EXPECT_THROW(optimizer.update(weights, gradient, 0.1, 0.9), Bug);
  optimizer.begin_update();
  EXPECT_THROW(optimizer.update_piece(2, weights, weights, 0.1, 0.9), Bug);
}

INSTANTIATE_TEST_SUITE_P(Rules, OptimizerLaw,
                         testing::Values(OptimizerSpec{}, OptimizerSpec{.weight_decay = 5e-4}, OptimizerSpec{.kind = OptimizerKind::adamw},
                                         OptimizerSpec{.kind = OptimizerKind::adamw, .weight_decay = 0.01}));

TEST(Optimizer, LookAheadByTheMomentumIsNesterovsPoint) {
  Optimizer optimizer({}, 1);
  std::vector<float> w{1}, ahead(1);
  optimizer.update(w, std::vector<float>{0.5F}, 0.1, 0.9);
  optimizer.look_ahead(w, 0.9, 0.1, ahead);
  EXPECT_FLOAT_EQ(w[0], 0.95F);
  EXPECT_FLOAT_EQ(ahead[0], 0.95F - 0.9F * 0.1F * 0.5F);
}

TEST(Sgd, FourQuarterSharesDecayLikeOneWhole) {
  OptimizerSpec spec;
  spec.weight_decay = 0.5;
  const std::vector<float> none(1, 0.0F);
  std::vector<float> whole{1.0F};
  std::vector<float> parts{1.0F};
  Optimizer(spec, 1).update(whole, none, 1e-3, 0, 1);
  Optimizer quarters(spec, 1);
  for (int i = 0; i < 4; ++i) quarters.update(parts, none, 1e-3, 0, 0.25);
  EXPECT_LT(whole[0], 1.0F);
  EXPECT_NEAR(parts[0], whole[0], 1e-6);
}

TEST(AdamW, StepScalesWithTheShareOfTheGlobalBatch) {
  OptimizerSpec spec;
  spec.kind = OptimizerKind::adamw;
  const std::vector<float> gradient(1, 0.3F);
  std::vector<float> whole{1.0F};
  std::vector<float> quarter{1.0F};
  Optimizer(spec, 1).update(whole, gradient, 1e-2, 0, 1);
  Optimizer(spec, 1).update(quarter, gradient, 1e-2, 0, 0.25);
  EXPECT_NEAR(1 - quarter[0], (1 - whole[0]) / 4, 1e-6);
}

}  // namespace
}  // namespace motley::store
