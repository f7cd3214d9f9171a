// Passages: the simulator's cut-through arithmetic, in numbers that can be checked by hand.
#include "transport/shared_link.h"

#include <gtest/gtest.h>

namespace motley::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t slice = 10'000;  // bytes: 10 ms at `slow`, 5 ms at twice that
constexpr double slow = 1e6;
constexpr SharedLink::Instant start{};

SharedLinks made_of(std::initializer_list<double> rates) {
  SharedLinks shared_links;
  for (const double rate : rates) shared_links.push_back(std::make_shared<SharedLink>(rate));
  return shared_links;
}

TEST(APassage, IsAFirstInFirstOutPipe) {
  SharedLink shared_link(slow);
  EXPECT_EQ(shared_link.take(slice, start), start + 10ms);
  EXPECT_EQ(shared_link.take(slice, start + 3ms), start + 20ms);   // behind the first
  EXPECT_EQ(shared_link.take(slice, start + 50ms), start + 60ms);  // long idle: nothing is saved up
}

TEST(SharedLinks, NoneLetASliceThroughAsItComes) { EXPECT_EQ(through({}, slice, slow, start + 7ms), start + 7ms); }

TEST(SharedLinks, OneFasterThanTheSenderCostsNothing) { EXPECT_EQ(through(made_of({2 * slow}), slice, slow, start + 10ms), start + 10ms); }

TEST(SharedLinks, OneSlowerThanTheSenderGivesItsOwnPaceFromTheFirstByteOn) {
  const SharedLinks shared_links = made_of({slow});
  EXPECT_EQ(through(shared_links, slice, 2 * slow, start + 5ms), start + 10ms);   // head at 0
  EXPECT_EQ(through(shared_links, slice, 2 * slow, start + 10ms), start + 20ms);  // head at 5, the passage free at 10
}

TEST(SharedLinks, AChainCostsAsMuchAsItsSlowest) {
  EXPECT_EQ(through(made_of({2 * slow, slow, 4 * slow}), slice, 2 * slow, start + 5ms), start + 10ms);
}

TEST(SharedLinks, TwoSendersShareOneOfTwiceTheirSpeedWithoutLoss) {
  const SharedLinks card = made_of({2 * slow});
  EXPECT_EQ(through(card, slice, slow, start + 10ms), start + 10ms);
  EXPECT_EQ(through(card, slice, slow, start + 10ms), start + 10ms);
  EXPECT_EQ(through(card, slice, slow, start + 10ms), start + 15ms);  // a third is one too many
}

TEST(SharedLinks, ASliceOfUnknownPaceComesAsFastAsEachPassageIs) {
  const SharedLinks shared_links = made_of({slow, 2 * slow});
  EXPECT_EQ(through(shared_links, slice, 0, start + 10ms), start + 10ms);
  EXPECT_EQ(through(shared_links, slice, 0, start + 12ms), start + 20ms);
}

}  // namespace
}  // namespace motley::transport
