#include "store/tensor_places.h"

#include <gtest/gtest.h>

namespace motley::store {
namespace {

Tensor tensor(std::vector<std::int64_t> shape, std::uint32_t block, TensorKind kind = TensorKind::parameter) {
  std::uint64_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::uint64_t>(extent);
  return {.name = "t", .shape = std::move(shape), .offset = 0, .count = count, .kind = kind, .block = block};
}

ModelShape model(std::vector<Tensor> tensors, std::uint32_t blocks) {
  ModelShape shape{.tensors = std::move(tensors), .blocks = blocks};
  for (Tensor& each : shape.tensors) {
    each.offset = shape.values();
    (each.kind == TensorKind::parameter ? shape.parameters : shape.statistics) += each.count;
  }
  return shape;
}

std::vector<int> least_bits(const ModelShape& shape) {
  std::vector<int> bits;
  for (const TensorPlace& place : tensor_places(shape)) bits.push_back(place.least_bits);
  return bits;
}

TEST(TensorPlaces, Keep_offset_count_and_kind) {
  const ModelShape shape = model({tensor({40, 10}, 0), tensor({7}, 0, TensorKind::statistic)}, 1);
  const std::vector<TensorPlace> places = tensor_places(shape);
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[1].offset, 400U);
  EXPECT_EQ(places[1].count, 7U);
  EXPECT_EQ(places[1].kind, TensorKind::statistic);
}

TEST(TensorPlaces, Biases_statistics_and_tiny_tensors_stay_fp32) {
  const ModelShape shape = model(
      {tensor({1000, 10}, 1), tensor({1000}, 1), tensor({15, 17}, 1), tensor({16, 16}, 1), tensor({300, 2}, 1, TensorKind::statistic)}, 3);
  EXPECT_EQ(least_bits(shape), (std::vector{2, 32, 32, 2, 32}));
}

TEST(TensorPlaces, First_and_last_block_get_8_bits_when_small) {
  EXPECT_EQ(least_bits(model({tensor({20, 20}, 0), tensor({100, 100}, 1), tensor({20, 20}, 2)}, 3)), (std::vector{8, 2, 8}));
}

TEST(TensorPlaces, First_and_last_block_get_2_bits_when_large) {
  EXPECT_EQ(least_bits(model({tensor({100, 100}, 0), tensor({100, 100}, 1), tensor({20, 20}, 2)}, 3)), (std::vector{2, 2, 2}));
}

}  // namespace
}  // namespace motley::store
