// Layouts: every value is in one slice, kinds are not mixed, sizes are bounded, servers balanced.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"
#include "store/layout.h"

namespace motley::store {
namespace {

std::vector<TensorPlace> places(std::initializer_list<std::uint64_t> parameters, std::initializer_list<std::uint64_t> statistics = {}) {
  std::vector<TensorPlace> tensors;
  std::uint64_t offset = 0;
  const auto add = [&](TensorKind kind) {
    return [&, kind](std::uint64_t count) {
      tensors.push_back({offset, count, kind});
      offset += count;
    };
  };
  std::for_each(parameters.begin(), parameters.end(), add(TensorKind::parameter));
  std::for_each(statistics.begin(), statistics.end(), add(TensorKind::statistic));
  return tensors;
}

std::vector<std::uint64_t> counts(const Layout& layout) {
  std::vector<std::uint64_t> out;
  for (const Slice& slice : layout.slices) out.push_back(slice.count);
  return out;
}

using Counts = std::vector<std::uint64_t>;

TEST(Cut, SmallNeighboursAreMergedUpToTheLimit) { EXPECT_EQ(counts(cut(places({30, 30, 40, 1}), 100, 1)), (Counts{100, 1})); }

TEST(Cut, ALargeTensorIsSplitIntoNearlyEqualPieces) { EXPECT_EQ(counts(cut(places({250}), 100, 1)), (Counts{83, 83, 84})); }

TEST(Cut, ABiasJoinsTheLastPieceOfItsWeight) { EXPECT_EQ(counts(cut(places({150, 10}), 100, 1)), (Counts{75, 85})); }

TEST(Cut, StatisticsNeverShareASliceWithParameters) {
  const Layout layout = cut(places({10}, {10}), 100, 1);
  EXPECT_EQ(counts(layout), (Counts{10, 10}));
  EXPECT_EQ(layout[SliceId{0}].kind, TensorKind::parameter);
  EXPECT_EQ(layout[SliceId{1}].kind, TensorKind::statistic);
}

TEST(Cut, EmptyTensorsLeaveNoSlice) { EXPECT_EQ(counts(cut(places({0, 5, 0}, {0}), 100, 2)), (Counts{5})); }

TEST(Cut, RejectsTensorsOutOfOrder) {
  const std::vector<TensorPlace> gap{{0, 5, TensorKind::parameter}, {6, 5, TensorKind::parameter}};
  EXPECT_THROW(cut(gap, 10, 1), Bug);
  const std::vector<TensorPlace> statistics_first{{0, 5, TensorKind::statistic}, {5, 5, TensorKind::parameter}};
  EXPECT_THROW(cut(statistics_first, 10, 1), Bug);
}

TEST(Cut, WholeTensorsAreNeitherSplitNorMerged) {
  EXPECT_EQ(counts(cut(places({30, 250, 0, 1}, {2, 2}), 100, 1, {.whole_tensors = true})), (Counts{30, 250, 1, 2, 2}));
}

std::vector<std::uint32_t> priorities(const Layout& layout) {
  std::vector<std::uint32_t> out;
  for (const Slice& slice : layout.slices) out.push_back(slice.priority);
  return out;
}

TEST(Cut, PrioritiesFollowForwardOrder) {
  using Priorities = std::vector<std::uint32_t>;
  EXPECT_EQ(priorities(cut(places({100, 100, 100}, {7}), 100, 2)), (Priorities{1, 2, 3, 0})) << "every block reads its statistics";
  EXPECT_EQ(priorities(cut(places({100, 100, 100}, {7}), 100, 2, {.backward_order = true})), (Priorities{3, 2, 1, 0}));
}

TEST(Layout, ListsTheSlicesOfAServerInOrder) {
  const Layout layout = cut(places({100, 100, 100, 100}), 100, 2);
  EXPECT_EQ(layout.of(ServerId{0}), (std::vector<SliceId>{{0}, {2}}));
  EXPECT_EQ(layout.of(ServerId{1}), (std::vector<SliceId>{{1}, {3}}));
}

std::vector<std::uint32_t> servers_of(const Layout& layout) {
  std::vector<std::uint32_t> out;
  for (const Slice& slice : layout.slices) out.push_back(slice.server.value);
  return out;
}

TEST(Place, EqualHeadStartsKeepTheLayout) {
  Layout layout = cut(places({100, 250, 30, 100}), 100, 2);
  const auto before = servers_of(layout);
  place(layout, std::vector<std::uint64_t>{0, 0});
  EXPECT_EQ(servers_of(layout), before);
}

TEST(Place, FirstLayersAreOnTheClosestServer) {
  Layout layout = cut(places({100, 100, 100, 100, 100, 100, 100, 100}), 100, 2);
  place(layout, std::vector<std::uint64_t>{150, 0});
  EXPECT_EQ(servers_of(layout), (std::vector<std::uint32_t>{1, 1, 0, 1, 0, 1, 0, 1})) << "server 0 is 1.5 slices behind";
}

TEST(Place, TheFarthestServerKeepsHalfOfItsShare) {
  Layout layout = cut(places({1000}), 10, 2);
  place(layout, std::vector<std::uint64_t>{0, 1'000'000});
  EXPECT_NEAR(static_cast<double>(layout.of(ServerId{1}).size()), 37.5, 1) << "its head start counts as 250 of 500 values";
  EXPECT_EQ(layout[SliceId{24}].server, ServerId{0});
}

TEST(Place, EveryServerKeepsASlice) {
  Layout layout = cut(places({100, 10}), 100, 2);
  place(layout, std::vector<std::uint64_t>{55, 0});
  for (const std::uint32_t server : {0U, 1U}) EXPECT_FALSE(layout.of(ServerId{server}).empty()) << server;
  place(layout, std::vector<std::uint64_t>{0, 1000});
  for (const std::uint32_t server : {0U, 1U}) EXPECT_FALSE(layout.of(ServerId{server}).empty()) << server;
}

TEST(HeadStarts, AreTheValuesSentDuringTheLatencyDifference) {
  using Values = std::vector<std::uint64_t>;
  EXPECT_EQ(head_starts(std::vector<double>{0.01, 0.03, 0.0105}, 4000), (Values{0, 20, 0})) << "half a millisecond does not count";
  EXPECT_EQ(head_starts({}, 4000), Values{});
}

std::vector<TensorPlace> random_places(Rng& rng) {
  std::vector<TensorPlace> tensors(1 + rng.below(20));
  const std::size_t parameters = rng.below(tensors.size() + 1);
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t count = rng.below(4) == 0 ? rng.below(5000) : rng.below(80);
    tensors[i] = {offset, count, i < parameters ? TensorKind::parameter : TensorKind::statistic};
    offset += count;
  }
  return tensors;
}

void expect_no_gaps(const Layout& layout) {
  std::uint64_t end = 0;
  for (const Slice& slice : layout.slices) {
    EXPECT_EQ(slice.offset, end);
    EXPECT_GT(slice.count, 0U);
    end += slice.count;
  }
  EXPECT_EQ(layout.values, end);
}

void expect_sizes(const Layout& layout, std::uint64_t slice_values) {
  for (std::size_t i = 0; i < layout.slices.size(); ++i) {
    const Slice& slice = layout.slices[i];
    EXPECT_LE(slice.count, slice_values);
    if (i + 1 < layout.slices.size() && layout.slices[i + 1].kind == slice.kind) {
      EXPECT_GT(slice.count + layout.slices[i + 1].count, slice_values) << "these two could be merged";
    }
  }
}

void expect_kinds_as_in(std::span<const TensorPlace> tensors, const Layout& layout) {
  for (const TensorPlace& tensor : tensors)
    for (const Slice& slice : layout.slices) {
      const bool overlap = slice.offset < tensor.offset + tensor.count && tensor.offset < slice.offset + slice.count;
      if (overlap) {
        EXPECT_EQ(slice.kind, tensor.kind);
      }
    }
}

void expect_balance(const Layout& layout) {
  std::vector<std::uint64_t> load(layout.servers);
  std::uint64_t largest = 0;
  for (const Slice& slice : layout.slices) {
    load.at(slice.server.value) += slice.count;
    largest = std::max(largest, slice.count);
  }
  const auto [low, high] = std::minmax_element(load.begin(), load.end());
  EXPECT_LE(*high - *low, largest);
}

TEST(CutLaw, HoldsForRandomTensorsOnOneToFiveServers) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, "cut");
    const auto tensors = random_places(rng);
    const std::uint64_t slice_values = 1 + rng.below(400);
    for (std::uint32_t servers = 1; servers <= 5; ++servers) {
      const Layout layout = cut(tensors, slice_values, servers);
      expect_no_gaps(layout);
      expect_sizes(layout, slice_values);
      expect_kinds_as_in(tensors, layout);
      expect_balance(layout);
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace motley::store
