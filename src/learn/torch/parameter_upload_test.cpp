#include "learn/torch/parameter_upload.h"

#include <gtest/gtest.h>

#include "codec/codec.h"
#include "learn/torch/test_device.h"

namespace motley::learn {
namespace {

/// Delivers its items with the first take().
struct Delivering final : CountingIo {
  bool take(std::uint64_t, std::uint64_t, const std::function<void(const IncomingValues&)>& each) override {
    for (const IncomingValues& item : std::exchange(items, {})) each(item);
    return true;
  }
  std::vector<IncomingValues> items;
};

TEST(ParameterUpload, Copies_one_block_of_the_callers_values) {
  DeviceModel model(small_model(small_mlp), at::kCPU, false);
  ParameterUpload upload(model);
  const std::vector<float> values = counted(model.shape().values());
  CountingIo io;
  upload.begin();
  ASSERT_TRUE(upload.upload(1, values, io));
  const DeviceModel::Range range = model.range(1);
  EXPECT_EQ(io.waited, (CountingIo::Ranges{{range.first, range.last}}));
  const std::vector<float> device = floats_of(model.values());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(device[i], i >= range.first && i < range.last ? values[i] : 0) << i;
}

TEST(ParameterUpload, Block_behind_the_last_is_the_statistics) {
  DeviceModel model(small_model(small_resnet), at::kCPU, false);
  ParameterUpload upload(model);
  CountingIo io;
  upload.begin();
  ASSERT_TRUE(upload.upload(model.blocks(), counted(model.shape().values()), io));
  EXPECT_EQ(io.waited, (CountingIo::Ranges{{model.shape().parameters, model.shape().values()}}));
}

TEST(ParameterUpload, Copies_nothing_when_io_gives_up) {
  DeviceModel model(small_model(small_mlp), at::kCPU, false);
  ParameterUpload upload(model);
  CountingIo io;
  io.waits_left = 0;
  upload.begin();
  EXPECT_FALSE(upload.upload(0, counted(model.shape().values()), io));
  EXPECT_EQ(floats_of(model.values()), std::vector<float>(model.shape().values()));
}

TEST(ParameterUpload, Adds_encoded_differences_to_received_values) {
  DeviceModel model(small_model(small_mlp), at::kCPU, false);
  ParameterUpload upload(model);
  const std::vector<float> base = counted(20), change(10, 0.5F);
  codec::Bytes encoded;
  codec::make(8).value()->encode(change, encoded);
  Delivering io;
  // The first two are adjacent in memory and in the buffer; the last comes to a place that is in use.
  io.items = {
      {0, 10, 32, std::as_bytes(std::span(base).first(10))}, {10, 10, 32, std::as_bytes(std::span(base).last(10))}, {10, 10, 8, encoded}};
  const std::vector<float> unread(model.shape().values(), 1e30F);
  upload.begin();
  ASSERT_TRUE(upload.upload(0, unread, io));
  const std::vector<float> device = floats_of(model.values());
  for (std::size_t i = 0; i < 20; ++i) EXPECT_FLOAT_EQ(device[i], base[i] + (i < 10 ? 0.0F : 0.5F)) << i;
  EXPECT_EQ(device[20], 0);
}

}  // namespace
}  // namespace motley::learn
