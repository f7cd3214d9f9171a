// Slices are reported as done in order of priority, each once, with the same bits as without the callback.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "store/shard_store.h"

namespace motley::store {
namespace {

constexpr std::size_t slice_values = 3 * piece_values;
constexpr std::size_t slices = 24;

class OnSlicesDone : public testing::Test {
 protected:
  OnSlicesDone() {
    for (std::size_t i = 0; i < parts_values.size(); ++i) {
      parts_values[i].resize(layout.values);
      for (std::size_t v = 0; v < layout.values; ++v) parts_values[i][v] = static_cast<float>((v * 31 + i * 17) % 101) / 64.0F - 0.8F;
      parts.push_back({parts_values[i], 0.5, {}});
    }
  }
  [[nodiscard]] ShardStore make() const {
    return {layout, ServerId{0}, {.momentum = 0.9}, std::vector<float>(layout.values, 0.25F), {std::make_shared<ThreadPool>(2)}};
  }
  void expect_each_once_by_need() const {
    std::vector<std::uint32_t> priorities;
    for (const std::vector<SliceId>& few : on_slices_done)
      for (const SliceId id : few) priorities.push_back(layout[id].priority);
    EXPECT_EQ(priorities.size(), layout.slices.size());
    EXPECT_TRUE(std::is_sorted(priorities.begin(), priorities.end()));
    EXPECT_EQ(std::adjacent_find(priorities.begin(), priorities.end()), priorities.end());
  }

  const std::vector<TensorPlace> tensors{{0, slices* slice_values, TensorKind::parameter},
                                         {slices * slice_values, 100, TensorKind::statistic}};
  Layout layout = cut(tensors, slice_values, 1);
  std::vector<std::vector<float>> parts_values{2};
  std::vector<WeightedPart> parts;
  std::vector<std::vector<SliceId>> on_slices_done;
  const ShardStore::OnSlicesDone tell = [this](std::span<const SliceId> done) { on_slices_done.emplace_back(done.begin(), done.end()); };
  const Update update{UpdateKind::gradient, 0.1, 0.9, 1};
};

TEST_F(OnSlicesDone, AnUpdateReportsSlicesAsTheyAreDone) {
  ShardStore all_at_once = make();
  ShardStore by_and_by = make();
  std::vector<float> expected(layout.values);
  std::vector<float> written(layout.values);
  for (int step = 0; step < 3; ++step) {
    on_slices_done.clear();
    all_at_once.apply(update, parts);
    all_at_once.snapshot(0.9, expected);
    by_and_by.apply(update, parts, 0.9, written, tell);
    EXPECT_EQ(written, expected) << "step " << step;
    EXPECT_GT(on_slices_done.size(), 2U) << "not all at the end";
    expect_each_once_by_need();
  }
  EXPECT_EQ(by_and_by.version(), all_at_once.version());
}

TEST_F(OnSlicesDone, SpeculatedSlicesAreReportedFirst) {
  ShardStore plain = make();
  ShardStore speculating = make();
  std::vector<float> expected(layout.values);
  std::vector<float> written(layout.values);
  plain.apply(update, parts);
  plain.snapshot(0.9, expected);
  speculating.begin_speculation(update, 0.9, written);
  const std::vector<SliceId> ready{{20}, {3}, {7}};
  speculating.speculate(parts, ready);
  speculating.commit(parts, tell);
  EXPECT_EQ(written, expected);
  ASSERT_GT(on_slices_done.size(), 2U);
  EXPECT_EQ(on_slices_done.front(), (std::vector<SliceId>{{3}, {7}, {20}})) << "by need";
  on_slices_done.erase(on_slices_done.begin());
  std::size_t rest = 0;
  for (const auto& few : on_slices_done) rest += few.size();
  EXPECT_EQ(rest, layout.slices.size() - ready.size());
}

}  // namespace
}  // namespace motley::store
