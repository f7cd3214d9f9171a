// Passages: the simulator's cut-through arithmetic, in numbers that can be checked by hand.
#include "transport/passage.h"

#include <gtest/gtest.h>

namespace motley::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t slice = 10'000;  // bytes: 10 ms at `slow`, 5 ms at twice that
constexpr double slow = 1e6;
constexpr Passage::Instant start{};

Passages made_of(std::initializer_list<double> rates) {
  Passages passages;
  for (const double rate : rates) passages.push_back(std::make_shared<Passage>(rate));
  return passages;
}

TEST(APassage, IsAFirstInFirstOutPipe) {
  Passage passage(slow);
  EXPECT_EQ(passage.take(slice, start), start + 10ms);
  EXPECT_EQ(passage.take(slice, start + 3ms), start + 20ms);   // behind the first
  EXPECT_EQ(passage.take(slice, start + 50ms), start + 60ms);  // long idle: nothing is saved up
}

TEST(Passages, NoneLetASliceThroughAsItComes) { EXPECT_EQ(through({}, slice, slow, start + 7ms), start + 7ms); }

TEST(Passages, OneFasterThanTheSenderCostsNothing) { EXPECT_EQ(through(made_of({2 * slow}), slice, slow, start + 10ms), start + 10ms); }

TEST(Passages, OneSlowerThanTheSenderGivesItsOwnPaceFromTheFirstByteOn) {
  const Passages passages = made_of({slow});
  EXPECT_EQ(through(passages, slice, 2 * slow, start + 5ms), start + 10ms);   // head at 0
  EXPECT_EQ(through(passages, slice, 2 * slow, start + 10ms), start + 20ms);  // head at 5, the passage free at 10
}

TEST(Passages, AChainCostsAsMuchAsItsSlowest) {
  EXPECT_EQ(through(made_of({2 * slow, slow, 4 * slow}), slice, 2 * slow, start + 5ms), start + 10ms);
}

TEST(Passages, TwoSendersShareOneOfTwiceTheirSpeedWithoutLoss) {
  const Passages card = made_of({2 * slow});
  EXPECT_EQ(through(card, slice, slow, start + 10ms), start + 10ms);
  EXPECT_EQ(through(card, slice, slow, start + 10ms), start + 10ms);
  EXPECT_EQ(through(card, slice, slow, start + 10ms), start + 15ms);  // a third is one too many
}

TEST(Passages, ASliceOfUnknownPaceComesAsFastAsEachPassageIs) {
  const Passages passages = made_of({slow, 2 * slow});
  EXPECT_EQ(through(passages, slice, 0, start + 10ms), start + 10ms);
  EXPECT_EQ(through(passages, slice, 0, start + 12ms), start + 20ms);
}

}  // namespace
}  // namespace motley::transport
