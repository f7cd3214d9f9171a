#include "learn/torch/received_values.h"

#include <gtest/gtest.h>

#include "learn/torch/test_device.h"

namespace motley::learn {
namespace {

TEST(ReceivedValues, Copies_a_range) {
  const DeviceModel model(small_model(small_mlp), at::kCPU, false);
  ReceivedValues received(model);
  const std::vector<float> values = counted(3);
  received.receive(2, values);
  const std::vector<float> device = floats_of(received.values());
  EXPECT_EQ(std::vector(device.begin() + 1, device.begin() + 6), (std::vector<float>{0, values[0], values[1], values[2], 0}));
}

TEST(ReceivedValues, Update_norm_is_between_two_watched_models) {
  const DeviceModel model(small_model(small_resnet), at::kCPU, false);
  ReceivedValues received(model);
  std::vector<float> values = counted(model.shape().values());
  received.receive(0, values);
  received.watch();
  values[0] += 3;
  values[1] -= 4;
  values.back() += 100;  // a statistic: not counted
  received.receive(0, values);
  received.watch();
  EXPECT_NEAR(received.update_norm().item<double>(), 25, 1e-3);
}

}  // namespace
}  // namespace motley::learn
