// The prediction of the next update: when it is made, when it matches, when it is given up.
#include "protocol/speculative_update.h"

#include <gtest/gtest.h>

namespace motley::protocol {
namespace {

wire::Apply update(std::uint32_t step, std::vector<double> weights, double rate = 0.1, double next_rate = 0.1) {
  wire::Apply made{.version = {step}, .kind = UpdateKind::gradient, .rate = rate, .momentum = 0.9, .share = 1, .parts = {}};
  made.next_rate = next_rate;
  for (std::uint32_t w = 0; w < weights.size(); ++w) made.parts.push_back({WorkerId{w}, Step{step}, weights[w], Step{step}});
  return made;
}

TEST(SpeculativeUpdate, ExpectsAnUpdateThatHasComeTwice) {
  SpeculativeUpdate predicted(2);
  EXPECT_FALSE(predicted.updated(update(0, {0.5, 0.5})));
  EXPECT_FALSE(predicted.arrived(WorkerId{0}, Step{1}, 0));
  EXPECT_TRUE(predicted.updated(update(1, {0.5, 0.5})));
  EXPECT_FALSE(predicted.arrived(WorkerId{1}, Step{2}, 0));
  EXPECT_FALSE(predicted.arrived(WorkerId{1}, Step{2}, 0)) << "the same slice again";
  EXPECT_TRUE(predicted.arrived(WorkerId{0}, Step{2}, 0));
  EXPECT_FALSE(predicted.arrived(WorkerId{0}, Step{2}, 1));
  EXPECT_EQ(predicted.parts()[0].step, Step{2});
  EXPECT_TRUE(predicted.matches(update(2, {0.5, 0.5})));
  EXPECT_FALSE(predicted.matches(update(2, {0.4, 0.6})));
  EXPECT_FALSE(predicted.matches(update(2, {0.5, 0.5}, 0.2)));
  EXPECT_FALSE(predicted.matches(update(3, {0.5, 0.5})));
}

TEST(SpeculativeUpdate, ExpectsTheAnnouncedRate) {
  SpeculativeUpdate predicted(1);
  predicted.updated(update(0, {0.5, 0.5}, 0.1, 0.2));
  EXPECT_TRUE(predicted.updated(update(1, {0.5, 0.5}, 0.2, 0.3)));
  predicted.arrived(WorkerId{0}, Step{2}, 0);
  predicted.arrived(WorkerId{1}, Step{2}, 0);
  EXPECT_TRUE(predicted.matches(update(2, {0.5, 0.5}, 0.3)));
  EXPECT_FALSE(predicted.matches(update(2, {0.5, 0.5}, 0.2)));
}

TEST(SpeculativeUpdate, ExpectsNothingOfOneWorkerOrOfChangedWeights) {
  SpeculativeUpdate predicted(1);
  predicted.updated(update(0, {1}));
  EXPECT_FALSE(predicted.updated(update(1, {1})));
  predicted.updated(update(2, {0.5, 0.5}));
  EXPECT_FALSE(predicted.updated(update(3, {0.6, 0.4})));
  EXPECT_TRUE(predicted.updated(update(4, {0.6, 0.4})));
  EXPECT_FALSE(predicted.arrived(WorkerId{2}, Step{5}, 0)) << "not a worker of the update";
  EXPECT_FALSE(predicted.arrived(WorkerId{0}, Step{4}, 0)) << "the step was applied already";
  EXPECT_FALSE(predicted.arrived(WorkerId{1}, Step{5}, 0)) << "its slice did not count for the next update";
  EXPECT_TRUE(predicted.arrived(WorkerId{0}, Step{5}, 0));
}

TEST(SpeculativeUpdate, ExpectsNothingOnceAPartIsDiscarded) {
  SpeculativeUpdate predicted(1);
  predicted.updated(update(0, {0.5, 0.5}));
  predicted.updated(update(1, {0.5, 0.5}));
  predicted.arrived(WorkerId{0}, Step{2}, 0);
  predicted.discarded(WorkerId{1}, Step{7});
  EXPECT_TRUE(predicted.arrived(WorkerId{1}, Step{2}, 0));
  predicted.discarded(WorkerId{0}, Step{2});
  EXPECT_FALSE(predicted.matches(update(2, {0.5, 0.5})));
}

TEST(SpeculativeUpdate, ExpectsNoUpdateThatDependsOnMoreThanItsParts) {
  SpeculativeUpdate predicted(1);
  wire::Apply compensated = update(0, {0.5, 0.5});
  compensated.compensation = 0.04;
  predicted.updated(compensated);
  EXPECT_FALSE(predicted.updated(compensated));
  wire::Apply bypassing = update(0, {0.5, 0.5});
  bypassing.kind = UpdateKind::bypass_momentum;
  predicted.updated(bypassing);
  EXPECT_FALSE(predicted.updated(bypassing));
}

}  // namespace
}  // namespace motley::protocol
