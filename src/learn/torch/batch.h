// The samples of one forward as tensors.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <span>

#include "learn/dataset.h"

namespace motley::learn {

template <class Number>
std::span<Number> span_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<Number>(), static_cast<std::size_t>(tensor.numel())};
}

/// Reuses its buffers: they grow to the largest batch seen.
class Batch {
 public:
  explicit Batch(const SampleShape& shape) : shape_(shape) {}

  void gather(const DataSet& data, Part part, std::span<const std::uint32_t> samples) {
    const auto rows = static_cast<std::int64_t>(samples.size());
    if (rows > capacity_) grow(rows);
    inputs = all_inputs_.narrow(0, 0, rows);
    targets = all_targets_.narrow(0, 0, rows);
    if (shape_.text)
      data.gather(part, samples, span_of<std::int64_t>(inputs), span_of<std::int64_t>(targets));
    else
      data.gather(part, samples, span_of<float>(inputs), span_of<std::int64_t>(targets));
  }

  /// One sample of zeros.
  [[nodiscard]] at::Tensor blank() const { return make_inputs(1).zero_(); }

  at::Tensor inputs;   // [samples, channels, height, width] or [samples, context]
  at::Tensor targets;  // [samples, targets]

 private:
  [[nodiscard]] at::Tensor make_inputs(std::int64_t rows) const {
    return shape_.text ? at::empty({rows, shape_.context}, at::kLong) : at::empty({rows, shape_.channels, shape_.height, shape_.width});
  }
  void grow(std::int64_t rows) {
    all_inputs_ = make_inputs(rows);
    all_targets_ = at::empty({rows, shape_.targets()}, at::kLong);
    capacity_ = rows;
  }
  SampleShape shape_;
  std::int64_t capacity_ = 0;
  at::Tensor all_inputs_;
  at::Tensor all_targets_;
};

}  // namespace motley::learn
