// Models that stages submit in parts: how many are received at once, and which of them become whole.
#include "runtime/model_parts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace motley::runtime {
namespace {

constexpr std::uint64_t values = 3;  // of each of two stages: all of them parameters

/// Each stage submits its values and moments, one number at a time.
class TwoStages : public testing::Test {
 protected:
  TwoStages() : parts(false) {
    model.values.resize(2 * values);
    parts.begin({{{{0, 0, values}}, values, values}, {{{0, values, values}}, values, values}});
  }
  /// Whether the model is whole now.
  bool submit_state(std::uint32_t stage, std::uint64_t mini_batches, wire::StateKind state_kind, std::uint64_t offset) {
    const wire::StageSlice slice{1, stage, mini_batches, state_kind, offset};
    const auto buffer = parts.receive_buffer(slice, sizeof(float));
    EXPECT_TRUE(buffer);
    if (!buffer || !parts.wants(slice, *buffer)) return false;
    buffer->values[0] = static_cast<float>(mini_batches);
    return parts.received(slice, *buffer);
  }
  bool submit_state(std::uint32_t stage, std::uint64_t mini_batches) {
    bool whole = false;
    for (const wire::StateKind state_kind : {wire::StateKind::values, wire::StateKind::first})
      for (std::uint64_t i = 0; i < values; ++i) whole = submit_state(stage, mini_batches, state_kind, i);
    return whole;
  }
  ModelParts parts;
  store::StagedModel model;
};

TEST_F(TwoStages, SubmitOneModelAfterTheOther) {
  for (const std::uint64_t n : {5U, 10U, 15U}) {
    EXPECT_FALSE(submit_state(0, n));
    EXPECT_FALSE(parts.put(n, model)) << "half of it";
    EXPECT_TRUE(submit_state(1, n));
    ASSERT_TRUE(parts.put(n, model));
    EXPECT_EQ(model.values, std::vector<float>(2 * values, static_cast<float>(n)));
    EXPECT_EQ(model.updates, n);
    EXPECT_EQ(parts.models(), 0U);
  }
}

TEST_F(TwoStages, HaveAtMostTwoModelsInFlight) {
  for (std::uint64_t n = 1; n <= 100; ++n) {
    submit_state(0, n);
    EXPECT_LE(parts.models(), ModelParts::most_models);
  }
  EXPECT_EQ(ModelParts::most_models, 2U);
}

TEST_F(TwoStages, KeepTheOldestAndTheNewestWhenOneIsSlow) {
  for (const std::uint64_t n : {5U, 10U, 15U, 20U}) submit_state(0, n);
  EXPECT_TRUE(submit_state(1, 5)) << "newer models do not replace it";
  EXPECT_TRUE(parts.put(5, model));
  EXPECT_FALSE(submit_state(1, 10)) << "dropped";
  EXPECT_FALSE(submit_state(1, 15));
  EXPECT_EQ(parts.models(), 1U) << "dropped models take no place";
  EXPECT_TRUE(submit_state(1, 20)) << "the last one of training";
  EXPECT_TRUE(parts.put(20, model));
  EXPECT_EQ(model.updates, 20U);
}

TEST_F(TwoStages, AWholeModelStaysUntilItIsTaken) {
  submit_state(0, 3);  // by a faulty stage
  submit_state(0, 10);
  EXPECT_TRUE(submit_state(1, 10));
  for (const std::uint64_t n : {15U, 20U, 25U}) submit_state(0, n);  // before the machine received that all committed 10
  EXPECT_TRUE(parts.put(10, model));
  EXPECT_EQ(model.updates, 10U);
}

TEST_F(TwoStages, SlicesOfADroppedModelAreReceivedAndIgnored) {
  const wire::StageSlice slice{1, 0, 10, wire::StateKind::values, 0};
  submit_state(0, 5);
  const auto buffer = parts.receive_buffer(slice, sizeof(float));
  ASSERT_TRUE(buffer);
  submit_state(1, 15, wire::StateKind::values, 0);
  buffer->values[0] = 1;
  EXPECT_FALSE(parts.wants(slice, *buffer));
}

TEST_F(TwoStages, SubmitSlicesInOrderOnly) {
  EXPECT_FALSE(parts.receive_buffer({1, 0, 5, wire::StateKind::values, 1}, sizeof(float)));
  EXPECT_FALSE(parts.receive_buffer({1, 0, 5, wire::StateKind::values, 0}, 3));
  EXPECT_FALSE(parts.receive_buffer({1, 0, 5, wire::StateKind::values, 0}, (values + 1) * sizeof(float)));
  EXPECT_FALSE(parts.receive_buffer({1, 0, 5, wire::StateKind::second, 0}, sizeof(float))) << "there are none";
}

}  // namespace
}  // namespace motley::runtime
