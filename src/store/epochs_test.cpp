#include "store/epochs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace motley::store {
namespace {

const std::vector<std::uint32_t> labels{2, 0, 1, 1, 0, 2, 2, 1, 0, 0};

Lease whole_epoch(std::uint32_t epoch) { return {{Range{epoch, 0, 10}}}; }

TEST(Epochs, EveryEpochHasEverySampleOnceInItsOwnOrder) {
  Epochs epochs(10, 3);
  const std::vector<std::uint32_t> first = epochs.samples_of(whole_epoch(0));
  const std::vector<std::uint32_t> second = epochs.samples_of(whole_epoch(1));
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set<std::uint32_t>(first.begin(), first.end()).size(), 10U);
  EXPECT_EQ(epochs.samples_of(whole_epoch(0)), first);
}

TEST(Epochs, PredictsALeaseAtTheSameDistance) {
  const Epochs epochs(10, 3);
  const Lease first{{Range{0, 1, 3}}};
  const Lease second{{Range{0, 5, 7}}};
  EXPECT_EQ(epochs.likely_after(first, second), (Lease{{Range{0, 9, 10}, Range{1, 0, 1}}})) << "at the seam of two epochs";
  EXPECT_EQ(epochs.likely_after(second, {{Range{0, 9, 10}, Range{1, 0, 1}}}), (Lease{{Range{1, 3, 5}}}));
}

TEST(Epochs, PredictsNothingAfterUnequalLeases) {
  const Epochs epochs(10, 3);
  const Lease lease{{Range{0, 5, 7}}};
  EXPECT_TRUE(epochs.likely_after({}, lease).empty());
  EXPECT_TRUE(epochs.likely_after({{Range{0, 1, 4}}}, lease).empty()) << "its batch has changed";
  EXPECT_TRUE(epochs.likely_after({{Range{0, 6, 8}}}, lease).empty()) << "something that was returned came between";
}

TEST(Shards, AreEqualAndHoldFewLabels) {
  const std::vector<std::uint32_t> shards = shards_by(labels, 3);
  EXPECT_EQ(std::count(shards.begin(), shards.end(), 0U), 3);
  EXPECT_EQ(std::count(shards.begin(), shards.end(), 1U), 3);
  EXPECT_EQ(std::count(shards.begin(), shards.end(), 2U), 4);
  EXPECT_EQ(shards[1], 0U);
  EXPECT_EQ(shards[6], 2U);
}

TEST(Shards, AreContiguousInEveryEpochAndShuffledInside) {
  const auto shards = std::make_shared<const std::vector<std::uint32_t>>(shards_by(labels, 2));
  Epochs epochs(10, 3, shards);
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    const std::vector<std::uint32_t> order = epochs.samples_of(whole_epoch(epoch));
    for (std::size_t place = 0; place < 10; ++place) EXPECT_EQ((*shards)[order[place]], place < 5 ? 0U : 1U);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3U);
}

}  // namespace
}  // namespace motley::store
