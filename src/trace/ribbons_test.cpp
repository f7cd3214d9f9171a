// Ribbons: what held when, exactly while there are few changes, and small however many there are.
#include "trace/ribbons.h"

#include <gtest/gtest.h>

#include <vector>

namespace motley::trace {
namespace {

using Stretches = std::vector<Ribbon::Stretch>;

Event at(double seconds, Kind kind, std::uint32_t worker = 0, std::uint64_t first = 0) {
  Event event;
  event.at = at_seconds(seconds);
  event.kind = kind;
  event.worker = {worker};
  event.first = first;
  return event;
}

Event because(Event event, std::uint8_t why) {
  event.why = why;
  return event;
}

Event counted(double seconds, std::uint32_t worker, std::uint64_t staleness, double weight = 1) {
  Event event = at(seconds, Kind::counted, worker);
  event.last = staleness;
  event.value = weight;
  return event;
}

Event applied(double seconds, double rate) {
  Event event = at(seconds, Kind::applied);
  event.value = rate;
  return event;
}

Ribbons two_workers() {
  Ribbons ribbons;
  ribbons.told(at(0, Kind::joined, 0, 7));
  ribbons.told(at(0, Kind::joined, 1, 8));
  return ribbons;
}

TEST(Ribbon, EndsAStretchWhereTheNextBegins) {
  Ribbon ribbon;
  ribbon.turn(1, 4);
  ribbon.turn(2, 4);
  ribbon.turn(3, std::nullopt);
  ribbon.turn(5, 6);
  EXPECT_EQ(ribbon.stretches(8), (Stretches{{1, 3, 4}, {5, 8, 6}}));
  EXPECT_EQ(ribbon.lasted(8), (std::map<std::uint32_t, double>{{4, 2.0}, {6, 3.0}}));
}

TEST(Ribbon, LeavesOutWhatLastsForNoTime) {
  Ribbon ribbon;
  ribbon.turn(1, 4);
  ribbon.turn(2, 5);
  ribbon.turn(2, 4);
  ribbon.turn(1.5, 6);  // told late
  EXPECT_EQ(ribbon.stretches(3), (Stretches{{1, 2, 4}, {2, 3, 6}}));
}

TEST(Ribbon, StaysSmallAndExactInSumWhateverTheNumberOfTurns) {
  Ribbon ribbon;
  for (int i = 0; i < 100'000; ++i) ribbon.turn(i, i % 2 == 0 ? Ribbon::Value(3) : std::nullopt);
  const auto seen = ribbon.stretches(100'000);
  EXPECT_LT(seen.size(), Ribbon::most_turns);
  EXPECT_EQ(seen.front().from_s, 0);
  EXPECT_EQ(ribbon.lasted(100'000).at(3), 50'000);
}

TEST(Ribbon, KeepsLongStretchesWhenShortOnesGrowTogether) {
  Ribbon ribbon;
  ribbon.turn(0, 1);
  for (int i = 0; i < 10'000; ++i) ribbon.turn(1000 + 0.01 * i, i % 2 == 0 ? 2 : 3);
  ribbon.turn(1100, 0);
  const auto seen = ribbon.stretches(2000);
  EXPECT_EQ(seen.front(), (Ribbon::Stretch{0, seen.front().to_s, 1}));
  EXPECT_EQ(seen.front().to_s, 1000);
  EXPECT_EQ(seen.back(), (Ribbon::Stretch{1100, 2000, 0}));
}

TEST(Ribbons, TellWhoStraggledWhenAndWhy) {
  Ribbons ribbons = two_workers();
  ribbons.told(because(at(2, Kind::straggles, 1, 1), 16));
  ribbons.told(because(at(6, Kind::straggles, 1, 0), 18));
  ribbons.told(at(8, Kind::finished));
  const auto workers = ribbons.workers();
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_TRUE(ribbons.has_states());
  EXPECT_EQ(workers[1].node, 8U);
  EXPECT_TRUE(workers[0].straggling.empty());
  EXPECT_EQ(workers[1].straggling, (Stretches{{2, 6, 16}}));
  EXPECT_EQ(workers[1].straggled_s, 4);
}

TEST(Ribbons, WhoLeavesStragglesNoMoreAndIsInNoGroup) {
  Ribbons ribbons = two_workers();
  ribbons.told(because(at(2, Kind::straggles, 1, 1), 16));
  ribbons.told(at(3, Kind::grouped, 1, 2));
  ribbons.told(at(5, Kind::left, 1));
  ribbons.told(at(8, Kind::finished));
  EXPECT_EQ(ribbons.workers()[1].straggling, (Stretches{{2, 5, 16}}));
  EXPECT_EQ(ribbons.workers()[1].groups, (Stretches{{3, 5, 2}}));
}

TEST(Ribbons, AreInStepUntilAnotherStateIsToldAndCountDelaysByState) {
  Ribbons ribbons = two_workers();
  ribbons.told(counted(1, 0, 0));
  ribbons.told(at(4, Kind::state, 0, 1));
  ribbons.told(counted(5, 1, 3));
  ribbons.told(counted(5, 1, 3));
  ribbons.told(at(6, Kind::state, 0, 2));
  ribbons.told(counted(6, 1, 1'000'000));
  ribbons.told(at(10, Kind::finished));
  EXPECT_EQ(ribbons.states(), (Stretches{{0, 4, 0}, {4, 6, 1}, {6, 10, 2}}));
  EXPECT_EQ(ribbons.state_lasted_s(), (std::array<double, 3>{4, 2, 4}));
  EXPECT_EQ(ribbons.staleness()[0], (Ribbons::Delays{1}));
  EXPECT_EQ(ribbons.staleness()[1], (Ribbons::Delays{0, 0, 0, 2}));
  EXPECT_EQ(ribbons.staleness()[2].size(), Ribbons::most_delays);
}

TEST(Ribbons, HaveNoStateWhileNobodyIsHere) {
  Ribbons ribbons;
  ribbons.told(at(1, Kind::joined, 0));
  ribbons.told(at(2, Kind::state, 0, 2));
  ribbons.told(at(3, Kind::left, 0));
  ribbons.told(at(5, Kind::joined, 1));
  ribbons.told(at(6, Kind::finished));
  EXPECT_EQ(ribbons.states(), (Stretches{{1, 2, 0}, {2, 3, 2}, {5, 6, 0}}));
}

TEST(Ribbons, MarkWhatWasThrownAwayAndCountItAll) {
  Ribbons ribbons = two_workers();
  ribbons.told(because(at(1, Kind::cancelled, 1), 14));
  for (int i = 0; i < 10'000; ++i) ribbons.told(because(at(2 + i, Kind::discarded, 1), 13));
  const Ribbons::Worker worker = ribbons.workers()[1];
  EXPECT_EQ(worker.cancelled, 1U);
  EXPECT_EQ(worker.discarded, 10'000U);
  EXPECT_LT(worker.marks.size(), 512U);
  EXPECT_TRUE(worker.marks[0].cancelled);
  EXPECT_EQ(worker.marks[0].why, 14);
  EXPECT_FALSE(worker.marks[1].cancelled);
}

TEST(Ribbons, GiveEachUpdateToTheGroupWithTheMostWeightInIt) {
  Ribbons ribbons = two_workers();
  ribbons.told(at(0, Kind::grouped, 0, 0));
  ribbons.told(at(0, Kind::grouped, 1, 1));
  ribbons.told(counted(1, 0, 0, 0.25));
  ribbons.told(applied(1, 0.1));
  ribbons.told(counted(2, 0, 0, 0.25));
  ribbons.told(counted(2, 1, 0, 0.75));
  ribbons.told(applied(2, 0.1));
  const auto rates = ribbons.rates();
  EXPECT_TRUE(ribbons.has_groups());
  ASSERT_EQ(rates.size(), 2U);
  EXPECT_DOUBLE_EQ(rates.at(0).at(0).rate, 0.025);
  EXPECT_DOUBLE_EQ(rates.at(1).at(0).rate, 0.1);
  EXPECT_EQ(rates.at(1).at(0).time_s, 2);
}

TEST(Ribbons, OfARunWithNeitherStatesNorGroupsSaySo) {
  Ribbons ribbons = two_workers();
  ribbons.told(counted(1, 0, 0));
  ribbons.told(applied(1, 0.1));
  ribbons.told(at(2, Kind::finished));
  EXPECT_FALSE(ribbons.has_states());
  EXPECT_FALSE(ribbons.has_groups());
  EXPECT_TRUE(ribbons.rates().empty());
}

}  // namespace
}  // namespace motley::trace
