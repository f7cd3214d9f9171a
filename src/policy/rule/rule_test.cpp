// Rules: weights go by samples, and the guard scales outbursts down.
#include "policy/rule/rule.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace motley::policy {
namespace {

Contribution of(std::uint32_t samples, double norm = 1) { return {.report = {.samples = samples, .squared_norm = norm * norm}}; }

std::vector<double> weights(Rule& rule, const std::vector<Contribution>& members) {
  std::vector<double> result(members.size());
  rule.weigh(members, result);
  return result;
}

TEST(RuleMean, WeighsBySamplesOfTheFixedGlobalBatch) {
  RuleMean rule(64);
  EXPECT_EQ(rule.payload(), Payload::gradient);
  EXPECT_EQ(weights(rule, {of(32), of(16), of(16)}), (std::vector<double>{0.5, 0.25, 0.25}));
  EXPECT_EQ(weights(rule, {of(16)}), (std::vector<double>{0.25})) << "one by one they weigh what they would together";
}

TEST(RuleModelMean, WeighsBySamplesOfTheMembers) {
  RuleModelMean rule;
  EXPECT_EQ(rule.payload(), Payload::delta);
  EXPECT_EQ(weights(rule, {of(30), of(10)}), (std::vector<double>{0.75, 0.25}));
  EXPECT_EQ(weights(rule, {of(10)}), (std::vector<double>{1.0}));
}

struct Clipped : testing::Test {
  RuleClipped rule{std::make_unique<RuleMean>(1), 1.5};
  double weigh(double norm) { return weights(rule, {of(1, norm)}).front(); }
};

TEST_F(Clipped, LeavesOrdinaryNormsAlone) {
  for (const double norm : {1.0, 1.4, 0.7, 1.3, 1.0}) EXPECT_EQ(weigh(norm), 1.0);
  EXPECT_EQ(rule.payload(), Payload::gradient);
}

TEST_F(Clipped, ScalesAnOutlierToTheMultipleOfTheMovingNorm) {
  weigh(2);
  EXPECT_DOUBLE_EQ(weigh(30), 1.5 * 2 / 30);
  EXPECT_DOUBLE_EQ(weigh(30), 1.5 * (0.95 * 2 + 0.05 * 3) / 30) << "the clipped norm moves the bar, not the outburst";
}

TEST_F(Clipped, FollowsALastingRise) {
  weigh(1);
  for (int i = 0; i < 100; ++i) weigh(3);
  EXPECT_EQ(weigh(3), 1.0);
}

TEST_F(Clipped, AZeroGradientDoesNotLowerTheLimit) {
  weigh(2);
  EXPECT_EQ(weigh(0), 1.0);
  EXPECT_EQ(weigh(3), 1.0);
}

TEST_F(Clipped, MembersOfOneUpdateAreClippedOneAfterTheOther) {
  weigh(1);
  const auto both = weights(rule, {of(1, 1), of(1, 15)});
  EXPECT_EQ(both[0], 1.0);
  EXPECT_DOUBLE_EQ(both[1], 0.1);
}

}  // namespace
}  // namespace motley::policy
