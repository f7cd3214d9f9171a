// The tensors of a model and their offsets in one flat buffer of floats.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace motley {

enum class TensorKind : std::uint8_t {
  parameter,  // has a gradient; the optimizer updates it
  statistic   // running mean and variance of batch norm; averaged, weighted by samples
};

/// One tensor of a model; its values are [offset, offset + count) of the flat buffer.
struct Tensor {
  std::string name;  // "layer2.0.conv1.weight"
  std::vector<std::int64_t> shape;
  std::uint64_t offset{};
  std::uint64_t count{};
  TensorKind kind{};
  std::uint32_t block{};  // index of the block that declares it
};

/// All tensors, without gaps: the parameters in forward order, then the statistics in forward order.
struct ModelShape {
  std::vector<Tensor> tensors;
  std::uint64_t parameters{};  // values of all parameters
  std::uint64_t statistics{};  // values of all statistics
  std::uint32_t blocks{};
  [[nodiscard]] std::uint64_t values() const { return parameters + statistics; }
};

}  // namespace motley
