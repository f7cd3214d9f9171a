#include "runtime/incoming_parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "codec/codec.h"
#include "runtime/linear_source_for_tests.h"

namespace motley::runtime {
namespace {

constexpr std::uint8_t few = 8;

class IncomingParametersTest : public testing::Test {
 protected:
  [[nodiscard]] std::shared_ptr<IncomingParameters> make() const {
    return std::make_shared<IncomingParameters>(layout, make_buffer(linear_values));
  }
  /// A slice whose values are all `value`, as fp32 or encoded.
  void lay(IncomingParameters& incoming, std::uint32_t slice, float value, std::uint8_t bits = 32,
           const std::shared_ptr<IncomingParameters>& before = nullptr) {
    const store::Slice& place = layout.slices[slice];
    codec::Bytes bytes;
    codec::make(bits).value()->encode(std::vector<float>(place.count, value), bytes);
    std::copy(bytes.begin(), bytes.end(), incoming.buffer().bytes(place.offset, place.count).begin());
    incoming.arrived({slice}, bits, before);
  }
  std::vector<std::pair<std::uint8_t, float>> handed_over(IncomingParameters& incoming, std::size_t slice) {
    std::vector<std::pair<std::uint8_t, float>> all;
    incoming.hand_over(slice, [&](const IncomingValues& came) {
      EXPECT_EQ(came.first, layout.slices[slice].offset);
      std::vector<float> values(came.count);
      EXPECT_TRUE(codec::make(came.bits).value()->decode(came.bytes, values).ok());
      all.emplace_back(came.bits, values.back());
    });
    return all;
  }
  using Came = std::vector<std::pair<std::uint8_t, float>>;
  store::Layout layout = linear_layout();
};

TEST_F(IncomingParametersTest, SlicesAreHandedOverOnce) {
  const auto incoming = make();
  lay(*incoming, 1, 2);
  EXPECT_EQ(handed_over(*incoming, 1), (Came{{32, 2}}));
  EXPECT_EQ(handed_over(*incoming, 1), Came{});
}

TEST_F(IncomingParametersTest, AChangeFollowsTheValuesItChanges) {
  const auto values = make();
  const auto skipped = make();  // not computed on
  const auto now = make();
  lay(*values, 0, 4);
  lay(*skipped, 0, 1, few, values);
  lay(*now, 0, -2, few, skipped);
  EXPECT_EQ(handed_over(*now, 0), (Came{{32, 4}, {few, 1}, {few, -2}}));
  EXPECT_EQ(handed_over(*skipped, 0), Came{}) << "it was handed over with the change";
}

TEST_F(IncomingParametersTest, WholeValuesNeedNoEarlierPull) {
  const auto before = make();
  const auto now = make();
  lay(*before, 0, 4);
  lay(*before, 2, 5);
  lay(*now, 0, 1, few, before);
  lay(*now, 2, 7);
  EXPECT_EQ(handed_over(*now, 2), (Came{{32, 7}}));
  EXPECT_EQ(handed_over(*now, 0), (Came{{32, 4}, {few, 1}}));
}

TEST_F(IncomingParametersTest, HandedOverPullsKeepNoOlderOnes) {
  auto before = make();
  const auto now = make();
  for (std::uint32_t s = 0; s < layout.slices.size(); ++s) {
    lay(*before, s, 1);
    lay(*now, s, 1, few, before);
  }
  const std::weak_ptr<IncomingParameters> watched = std::exchange(before, nullptr);
  EXPECT_FALSE(watched.expired());
  for (std::size_t s = 0; s < layout.slices.size(); ++s) handed_over(*now, s);
  EXPECT_TRUE(watched.expired());
}

TEST_F(IncomingParametersTest, AFailedHandOverIsRepeated) {
  const auto before = make();
  const auto now = make();
  lay(*before, 0, 4);
  lay(*now, 0, 1, few, before);
  int calls = 0;
  const auto no_memory = [&](const IncomingValues&) {
    if (++calls == 2) throw store::OutOfMemory("for the change");
  };
  EXPECT_THROW(now->hand_over(0, no_memory), store::OutOfMemory);
  EXPECT_EQ(handed_over(*now, 0), (Came{{few, 1}})) << "the values were handed over";
}

TEST_F(IncomingParametersTest, NeighboursAreMerged) {
  const auto incoming = make();
  std::vector<bool> taken;
  std::vector<store::IncomingUpdates::Piece> pieces;
  lay(*incoming, 0, 1);
  lay(*incoming, 1, 1);
  lay(*incoming, 3, 1);
  incoming->take(taken, pieces);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].first, 0U);
  EXPECT_EQ(pieces[0].values.size(), layout.slices[0].count + layout.slices[1].count);
  EXPECT_EQ(pieces[1].first, layout.slices[3].offset);
  lay(*incoming, 2, 1);
  incoming->take(taken, pieces);
  ASSERT_EQ(pieces.size(), 3U) << "pieces taken before are unchanged";
  EXPECT_EQ(pieces[2].first, layout.slices[2].offset);
  EXPECT_EQ(pieces[2].values.size(), layout.slices[2].count);
}

}  // namespace
}  // namespace motley::runtime
