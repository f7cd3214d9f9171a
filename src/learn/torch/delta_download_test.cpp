#include "learn/torch/delta_download.h"

#include <gtest/gtest.h>

#include <cstring>

#include "codec/codec.h"
#include "learn/torch/test_device.h"

namespace motley::learn {
namespace {

class DeltaDownloading : public testing::Test {
 protected:
  DeltaDownload::Scalars run(const GradientEncoding* encoding) {
    const at::Tensor device = at::from_blob(delta.data(), {static_cast<std::int64_t>(delta.size())}, at::kFloat).clone();
    const at::TensorOptions doubles(at::kDouble);
    return download.download(device, at::full({2}, 7, doubles), at::full({1}, 9, doubles), encoding, out);
  }
  DeviceModel model{small_model(small_resnet), at::kCPU, false};
  DeltaDownload download{model};
  std::vector<float> delta = counted(model.shape().values());
  std::vector<float> out = std::vector<float>(delta.size());
};

TEST_F(DeltaDownloading, Brings_delta_and_scalars) {
  const DeltaDownload::Scalars scalars = run(nullptr);
  EXPECT_EQ(out, delta);
  EXPECT_EQ(scalars.sums[0], 7);
  EXPECT_EQ(scalars.sums[1], 7);
  EXPECT_EQ(scalars.update_norm, 9);
  EXPECT_EQ(scalars.residual, 0);
  double squared_norm = 0;
  for (std::size_t i = 0; i < model.shape().parameters; ++i) squared_norm += static_cast<double>(delta[i]) * delta[i];
  EXPECT_NEAR(scalars.squared_norm, squared_norm, 1e-5 * squared_norm);
}

TEST_F(DeltaDownloading, Encodes_when_asked) {
  const GradientEncoding encoding{.slices = {{0, delta.size(), 4}}};
  const DeltaDownload::Scalars scalars = run(&encoding);
  codec::Bytes bytes;
  codec::make(4).value()->encode(delta, bytes);
  EXPECT_EQ(std::memcmp(bytes.data(), out.data(), bytes.size()), 0);
  EXPECT_GT(scalars.residual, 0);
}

}  // namespace
}  // namespace motley::learn
