#include "runtime/speculative_update.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

wire::Apply update(std::uint32_t step, std::vector<double> weights, double rate = 0.1, double next_rate = 0.1) {
  wire::Apply made{.version = {step}, .kind = UpdateKind::gradient, .rate = rate, .momentum = 0.9, .share = 1, .parts = {}};
  made.next_rate = next_rate;
  for (std::uint32_t w = 0; w < weights.size(); ++w) made.parts.push_back({WorkerId{w}, Step{step}, weights[w], Step{step}});
  return made;
}

TEST(SpeculativeUpdate, ExpectsWhatHasComeTwice) {
  SpeculativeUpdate speculative_update(2);
  EXPECT_FALSE(speculative_update.made(update(0, {0.5, 0.5})));
  EXPECT_FALSE(speculative_update.arrived(WorkerId{0}, Step{1}, SliceId{0}));
  EXPECT_TRUE(speculative_update.made(update(1, {0.5, 0.5})));
  EXPECT_FALSE(speculative_update.arrived(WorkerId{1}, Step{2}, SliceId{0}));
  EXPECT_FALSE(speculative_update.arrived(WorkerId{1}, Step{2}, SliceId{0})) << "the same twice";
  EXPECT_TRUE(speculative_update.arrived(WorkerId{0}, Step{2}, SliceId{0}));
  EXPECT_FALSE(speculative_update.arrived(WorkerId{0}, Step{2}, SliceId{1}));
  EXPECT_EQ(speculative_update.parts()[0].step, Step{2});
  EXPECT_TRUE(speculative_update.right(update(2, {0.5, 0.5})));
  EXPECT_FALSE(speculative_update.right(update(2, {0.4, 0.6})));
  EXPECT_FALSE(speculative_update.right(update(2, {0.5, 0.5}, 0.2)));
  EXPECT_FALSE(speculative_update.right(update(3, {0.5, 0.5})));
}

TEST(SpeculativeUpdate, GoesByTheRateThatWasAnnounced) {
  SpeculativeUpdate speculative_update(1);
  speculative_update.made(update(0, {0.5, 0.5}, 0.1, 0.2));
  EXPECT_TRUE(speculative_update.made(update(1, {0.5, 0.5}, 0.2, 0.3)));
  speculative_update.arrived(WorkerId{0}, Step{2}, SliceId{0});
  speculative_update.arrived(WorkerId{1}, Step{2}, SliceId{0});
  EXPECT_TRUE(speculative_update.right(update(2, {0.5, 0.5}, 0.3)));
  EXPECT_FALSE(speculative_update.right(update(2, {0.5, 0.5}, 0.2)));
}

TEST(SpeculativeUpdate, ExpectsNothingOfOneWorkerAloneNorWhenThingsChange) {
  SpeculativeUpdate speculative_update(1);
  speculative_update.made(update(0, {1}));
  EXPECT_FALSE(speculative_update.made(update(1, {1})));
  speculative_update.made(update(2, {0.5, 0.5}));
  EXPECT_FALSE(speculative_update.made(update(3, {0.6, 0.4})));
  EXPECT_TRUE(speculative_update.made(update(4, {0.6, 0.4})));
  EXPECT_FALSE(speculative_update.arrived(WorkerId{2}, Step{5}, SliceId{0})) << "a stranger";
  EXPECT_FALSE(speculative_update.arrived(WorkerId{0}, Step{4}, SliceId{0})) << "what was applied already";
  EXPECT_FALSE(speculative_update.arrived(WorkerId{1}, Step{5}, SliceId{0})) << "and does not count for what is next";
  EXPECT_TRUE(speculative_update.arrived(WorkerId{0}, Step{5}, SliceId{0}));
}

TEST(SpeculativeUpdate, IsWrongWhenAPartIsLost) {
  SpeculativeUpdate speculative_update(1);
  speculative_update.made(update(0, {0.5, 0.5}));
  speculative_update.made(update(1, {0.5, 0.5}));
  speculative_update.arrived(WorkerId{0}, Step{2}, SliceId{0});
  speculative_update.lost(WorkerId{1}, Step{7});
  EXPECT_TRUE(speculative_update.arrived(WorkerId{1}, Step{2}, SliceId{0}));
  speculative_update.lost(WorkerId{0}, Step{2});
  EXPECT_FALSE(speculative_update.right(update(2, {0.5, 0.5})));
}

TEST(SpeculativeUpdate, LeavesAloneWhatDependsOnMoreThanTheParts) {
  SpeculativeUpdate speculative_update(1);
  wire::Apply compensated = update(0, {0.5, 0.5});
  compensated.compensation = 0.04;
  speculative_update.made(compensated);
  EXPECT_FALSE(speculative_update.made(compensated));
  wire::Apply apart = update(0, {0.5, 0.5});
  apart.kind = UpdateKind::bypass_momentum;
  speculative_update.made(apart);
  EXPECT_FALSE(speculative_update.made(apart));
}

}  // namespace
}  // namespace motley::runtime
