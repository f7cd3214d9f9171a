#include "run/foresight.h"

#include <gtest/gtest.h>

namespace motley::run {
namespace {

wire::Apply update(std::uint32_t step, std::vector<double> weights, double rate = 0.1, double next_rate = 0.1) {
  wire::Apply made{.version = {step}, .kind = UpdateKind::gradient, .rate = rate, .momentum = 0.9, .share = 1, .parts = {}};
  made.next_rate = next_rate;
  for (std::uint32_t w = 0; w < weights.size(); ++w) made.parts.push_back({WorkerId{w}, Step{step}, weights[w], Step{step}});
  return made;
}

TEST(Foresight, ExpectsWhatHasComeTwice) {
  Foresight foresight(2);
  EXPECT_FALSE(foresight.made(update(0, {0.5, 0.5})));
  EXPECT_FALSE(foresight.arrived(WorkerId{0}, Step{1}, SliceId{0}));
  EXPECT_TRUE(foresight.made(update(1, {0.5, 0.5})));
  EXPECT_FALSE(foresight.arrived(WorkerId{1}, Step{2}, SliceId{0}));
  EXPECT_FALSE(foresight.arrived(WorkerId{1}, Step{2}, SliceId{0})) << "the same twice";
  EXPECT_TRUE(foresight.arrived(WorkerId{0}, Step{2}, SliceId{0}));
  EXPECT_FALSE(foresight.arrived(WorkerId{0}, Step{2}, SliceId{1}));
  EXPECT_EQ(foresight.parts()[0].step, Step{2});
  EXPECT_TRUE(foresight.right(update(2, {0.5, 0.5})));
  EXPECT_FALSE(foresight.right(update(2, {0.4, 0.6})));
  EXPECT_FALSE(foresight.right(update(2, {0.5, 0.5}, 0.2)));
  EXPECT_FALSE(foresight.right(update(3, {0.5, 0.5})));
}

TEST(Foresight, GoesByTheRateThatWasAnnounced) {
  Foresight foresight(1);
  foresight.made(update(0, {0.5, 0.5}, 0.1, 0.2));
  EXPECT_TRUE(foresight.made(update(1, {0.5, 0.5}, 0.2, 0.3)));
  foresight.arrived(WorkerId{0}, Step{2}, SliceId{0});
  foresight.arrived(WorkerId{1}, Step{2}, SliceId{0});
  EXPECT_TRUE(foresight.right(update(2, {0.5, 0.5}, 0.3)));
  EXPECT_FALSE(foresight.right(update(2, {0.5, 0.5}, 0.2)));
}

TEST(Foresight, ExpectsNothingOfOneWorkerAloneNorWhenThingsChange) {
  Foresight foresight(1);
  foresight.made(update(0, {1}));
  EXPECT_FALSE(foresight.made(update(1, {1})));
  foresight.made(update(2, {0.5, 0.5}));
  EXPECT_FALSE(foresight.made(update(3, {0.6, 0.4})));
  EXPECT_TRUE(foresight.made(update(4, {0.6, 0.4})));
  EXPECT_FALSE(foresight.arrived(WorkerId{2}, Step{5}, SliceId{0})) << "a stranger";
  EXPECT_FALSE(foresight.arrived(WorkerId{0}, Step{4}, SliceId{0})) << "what was applied already";
  EXPECT_FALSE(foresight.arrived(WorkerId{1}, Step{5}, SliceId{0})) << "and does not count for what is next";
  EXPECT_TRUE(foresight.arrived(WorkerId{0}, Step{5}, SliceId{0}));
}

TEST(Foresight, IsWrongWhenAPartIsLost) {
  Foresight foresight(1);
  foresight.made(update(0, {0.5, 0.5}));
  foresight.made(update(1, {0.5, 0.5}));
  foresight.arrived(WorkerId{0}, Step{2}, SliceId{0});
  foresight.lost(WorkerId{1}, Step{7});
  EXPECT_TRUE(foresight.arrived(WorkerId{1}, Step{2}, SliceId{0}));
  foresight.lost(WorkerId{0}, Step{2});
  EXPECT_FALSE(foresight.right(update(2, {0.5, 0.5})));
}

TEST(Foresight, LeavesAloneWhatDependsOnMoreThanTheParts) {
  Foresight foresight(1);
  wire::Apply compensated = update(0, {0.5, 0.5});
  compensated.compensation = 0.04;
  foresight.made(compensated);
  EXPECT_FALSE(foresight.made(compensated));
  wire::Apply apart = update(0, {0.5, 0.5});
  apart.kind = UpdateKind::apart;
  foresight.made(apart);
  EXPECT_FALSE(foresight.made(apart));
}

}  // namespace
}  // namespace motley::run
