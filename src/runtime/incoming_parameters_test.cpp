// In which order slices and the values that they are changes of are handed over, and what is kept until then.
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
  /// A slice arrives whose values are all `value`, in fp32 or encoded.
  void arrive(IncomingParameters& incoming, std::uint32_t slice, float value, std::uint8_t bits = 32,
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

TEST_F(IncomingParametersTest, Slices_are_handed_over_once) {
  const auto incoming = make();
  arrive(*incoming, 1, 2);
  EXPECT_EQ(handed_over(*incoming, 1), (Came{{32, 2}}));
  EXPECT_EQ(handed_over(*incoming, 1), Came{});
}

TEST_F(IncomingParametersTest, A_change_follows_the_values_that_it_changes) {
  const auto values = make();
  const auto skipped = make();  // not computed on
  const auto now = make();
  arrive(*values, 0, 4);
  arrive(*skipped, 0, 1, few, values);
  arrive(*now, 0, -2, few, skipped);
  EXPECT_EQ(handed_over(*now, 0), (Came{{32, 4}, {few, 1}, {few, -2}}));
  EXPECT_EQ(handed_over(*skipped, 0), Came{}) << "it was handed over with the later one";
}

TEST_F(IncomingParametersTest, Fp32_values_need_no_earlier_parameters) {
  const auto before = make();
  const auto now = make();
  arrive(*before, 0, 4);
  arrive(*before, 2, 5);
  arrive(*now, 0, 1, few, before);
  arrive(*now, 2, 7);
  EXPECT_EQ(handed_over(*now, 2), (Came{{32, 7}}));
  EXPECT_EQ(handed_over(*now, 0), (Came{{32, 4}, {few, 1}}));
}

TEST_F(IncomingParametersTest, Earlier_parameters_are_freed_after_the_last_hand_over) {
  auto before = make();
  const auto now = make();
  for (std::uint32_t s = 0; s < layout.slices.size(); ++s) {
    arrive(*before, s, 1);
    arrive(*now, s, 1, few, before);
  }
  const std::weak_ptr<IncomingParameters> watched = std::exchange(before, nullptr);
  EXPECT_FALSE(watched.expired());
  for (std::size_t s = 0; s < layout.slices.size(); ++s) handed_over(*now, s);
  EXPECT_TRUE(watched.expired());
}

TEST_F(IncomingParametersTest, A_slice_is_handed_over_again_after_an_exception) {
  const auto before = make();
  const auto now = make();
  arrive(*before, 0, 4);
  arrive(*now, 0, 1, few, before);
  int calls = 0;
  const auto no_memory = [&](const IncomingValues&) {
    if (++calls == 2) throw OutOfMemory("for the change");
  };
  EXPECT_THROW(now->hand_over(0, no_memory), OutOfMemory);
  EXPECT_EQ(handed_over(*now, 0), (Came{{few, 1}})) << "the values themselves were taken";
}

TEST_F(IncomingParametersTest, Adjacent_slices_are_taken_as_one_piece) {
  const auto incoming = make();
  std::vector<bool> taken;
  std::vector<store::IncomingUpdates::Piece> pieces;
  arrive(*incoming, 0, 1);
  arrive(*incoming, 1, 1);
  arrive(*incoming, 3, 1);
  incoming->take(taken, pieces);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].first, 0U);
  EXPECT_EQ(pieces[0].values.size(), layout.slices[0].count + layout.slices[1].count);
  EXPECT_EQ(pieces[1].first, layout.slices[3].offset);
  arrive(*incoming, 2, 1);
  incoming->take(taken, pieces);
  ASSERT_EQ(pieces.size(), 3U) << "earlier pieces stay as they are";
  EXPECT_EQ(pieces[2].first, layout.slices[2].offset);
  EXPECT_EQ(pieces[2].values.size(), layout.slices[2].count);
}

}  // namespace
}  // namespace motley::runtime
