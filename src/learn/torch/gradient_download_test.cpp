#include "learn/torch/gradient_download.h"

#include <gtest/gtest.h>

#include <cstring>

#include "codec/codec.h"
#include "learn/torch/test_device.h"

namespace motley::learn {
namespace {

/// A model whose gradient is 1/64, 2/64, ..., as if backward had computed it.
class Downloading : public testing::Test {
 protected:
  void SetUp() override {
    at::Tensor(model.gradient()).copy_(at::from_blob(gradient.data(), {static_cast<std::int64_t>(gradient.size())}, at::kFloat));
    model.score(at::zeros({4, 3}), at::zeros({4}, at::kLong), /*wants_gradient=*/false);
  }
  void send_and_deliver(const GradientEncoding* encoding) {
    download.begin(out, encoding);
    for (std::size_t block = model.blocks(); block-- > 0;) download.send(block);
    download.send(model.blocks());
    download.send_scalars();
    for (std::size_t block = model.blocks(); block-- > 0;) download.deliver(block, io);
    download.deliver(model.blocks(), io);
  }
  DeviceModel model{small_model(small_resnet), at::kCPU, false};
  GradientDownload download{model};
  std::vector<float> gradient = counted(model.shape().values());
  std::vector<float> out = std::vector<float>(gradient.size());
  CountingIo io;
};

TEST_F(Downloading, Brings_every_value_once_from_the_last_block) {
  send_and_deliver(nullptr);
  EXPECT_EQ(out, gradient);
  EXPECT_EQ(io.ready.front().second, model.shape().parameters);
  EXPECT_EQ(io.ready.back(), (std::pair{model.shape().parameters, model.shape().values()}));
  std::uint64_t values = 0;
  for (const auto& [first, last] : io.ready) values += last - first;
  EXPECT_EQ(values, gradient.size());
}

TEST_F(Downloading, Scalars_are_loss_hits_and_squared_norm_of_parameters) {
  send_and_deliver(nullptr);
  const GradientDownload::Scalars scalars = download.scalars();
  EXPECT_NEAR(scalars.sums[0], 4 * std::log(3.0), 1e-5);
  EXPECT_EQ(scalars.sums[1], 4);
  double squared_norm = 0;
  for (std::size_t i = 0; i < model.shape().parameters; ++i) squared_norm += static_cast<double>(gradient[i]) * gradient[i];
  EXPECT_NEAR(scalars.squared_norm, squared_norm, 1e-5 * squared_norm);
  EXPECT_EQ(scalars.residual, 0);
}

TEST_F(Downloading, Encodes_slices_across_blocks) {
  const std::uint64_t parameters = model.shape().parameters;
  const std::uint64_t half = parameters / 2;
  const GradientEncoding encoding{.slices = {{0, half, 8}, {half, parameters - half, 16}, {parameters, gradient.size() - parameters, 32}}};
  send_and_deliver(&encoding);
  EXPECT_TRUE(io.ready.empty());
  for (const auto& [first, count, bits] : encoding.slices) {
    codec::Bytes bytes;
    codec::make(bits).value()->encode(std::span(gradient).subspan(first, count), bytes);
    EXPECT_EQ(std::memcmp(bytes.data(), out.data() + first, bytes.size()), 0) << int{bits} << " bits";
  }
  EXPECT_GT(download.scalars().residual, 0);
}

}  // namespace
}  // namespace motley::learn
