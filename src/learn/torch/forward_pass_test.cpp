#include "learn/torch/forward_pass.h"

#include <gtest/gtest.h>

#include "learn/torch/test_device.h"

namespace motley::learn {
namespace {

struct Numbered final : CountingIo {
  explicit Numbered(std::uint64_t number_) : number(number_) {}
  [[nodiscard]] std::uint64_t id() const override { return number; }
  std::optional<NextStep> next_step() override { return next; }
  std::uint64_t number;
  std::optional<NextStep> next;
};

class Forward : public testing::Test {
 protected:
  void SetUp() override { fill_initial(model.model(), 1, values); }
  std::shared_ptr<const DataSet> data = small_pictures();
  DeviceModel model{small_model(small_resnet), at::kCPU, false};
  DeviceSamples samples{data, {at::kCPU}};
  ParameterUpload upload{model};
  ForwardPass forward{model, samples, upload};
  std::vector<float> values = std::vector<float>(model.shape().values());
  std::vector<std::uint32_t> batch = samples_from(0, 8), later = samples_from(8, 8);
};

TEST_F(Forward, A_step_begun_early_asks_for_each_block_once) {
  Numbered plain(1);
  const at::Tensor expected = forward.run(values, later, plain)->logits.clone();
  forward.restore_statistics();
  Numbered now(2), early(3), then(3);
  now.next = NextStep{3, values, later, &early};
  ASSERT_TRUE(forward.run(values, batch, now));
  forward.restore_statistics();
  forward.begin_next(now);
  const auto output = forward.run(values, later, then);
  ASSERT_TRUE(output);
  EXPECT_TRUE(output->logits.equal(expected));
  EXPECT_LT(then.waited.size(), plain.waited.size()) << "the first blocks were begun early";
}

TEST_F(Forward, Another_step_drops_the_one_begun_early) {
  Numbered plain(1);
  const at::Tensor expected = forward.run(values, batch, plain)->logits.clone();
  forward.restore_statistics();
  Numbered now(2), early(3), other(4);
  now.next = NextStep{3, values, later, &early};
  forward.begin_next(now);
  const auto output = forward.run(values, batch, other);
  ASSERT_TRUE(output);
  EXPECT_TRUE(output->logits.equal(expected));
  EXPECT_EQ(other.waited, plain.waited);
}

TEST_F(Forward, Returns_nothing_when_io_gives_up) {
  Numbered io(1);
  io.waits_left = 2;
  EXPECT_FALSE(forward.run(values, batch, io));
  forward.abandon();
  Numbered next(2);
  EXPECT_TRUE(forward.run(values, batch, next));
}

TEST_F(Forward, Restores_the_statistics_that_a_step_changes) {
  Numbered io(1);
  ASSERT_TRUE(forward.run(values, batch, io));
  const auto statistics = [&] { return floats_of(part(model.values(), model.shape().parameters, model.shape().values())); };
  const std::vector<float> before(values.begin() + static_cast<std::ptrdiff_t>(model.shape().parameters), values.end());
  EXPECT_NE(statistics(), before);
  forward.restore_statistics();
  EXPECT_EQ(statistics(), before);
}

}  // namespace
}  // namespace motley::learn
