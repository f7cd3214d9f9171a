// Cross-entropy against its definition in doubles.
#include "learn/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/rng.h"

namespace motley::learn {
namespace {

double softmax(const float* row, std::size_t classes, std::size_t c) {
  double sum = 0;
  for (std::size_t i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(row[i]));
  return std::exp(static_cast<double>(row[c])) / sum;
}

TEST(CrossEntropy, LossAndGradientFollowTheirDefinition) {
  constexpr std::size_t rows = 5, classes = 4;
  Rng rng(3, "logits");
  std::vector<float> logits(rows * classes), gradient(rows * classes);
  for (float& x : logits) x = static_cast<float>(3 * rng.normal());
  const std::vector<std::int64_t> targets{0, 3, 1, 1, 2};

  const Score score = cross_entropy(logits, targets, gradient);
  double loss = 0;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < classes; ++c) {
      const bool is_target = targets[r] == static_cast<std::int64_t>(c);
      const double p = softmax(&logits[r * classes], classes, c);
      if (is_target) loss -= std::log(p);
      EXPECT_NEAR(static_cast<double>(gradient[r * classes + c]), (p - (is_target ? 1 : 0)) / rows, 1e-7);
    }
  EXPECT_NEAR(score.loss_sum, loss, 1e-5);
  EXPECT_EQ(cross_entropy(logits, targets).loss_sum, score.loss_sum);
}

TEST(CrossEntropy, AHitIsTheFirstHighestLogit) {
  const std::vector<float> logits{1, 2, 2, 1};
  EXPECT_EQ(cross_entropy(logits, std::vector<std::int64_t>{1, 0}).hits, 2U);
  EXPECT_EQ(cross_entropy(logits, std::vector<std::int64_t>{0, 1}).hits, 0U);
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  const std::vector<float> logits{1000, -1000};
  EXPECT_NEAR(cross_entropy(logits, std::vector<std::int64_t>{1}).loss_sum, 2000, 1e-3);
  EXPECT_NEAR(cross_entropy(logits, std::vector<std::int64_t>{0}).loss_sum, 0, 1e-6);
}

TEST(CrossEntropy, RowsThatDoNotMatchTheTargetsAreOurBug) {
  EXPECT_THROW((void)cross_entropy(std::vector<float>(5), std::vector<std::int64_t>(2)), Bug);
}

}  // namespace
}  // namespace motley::learn
