// The formats of module codec as operations of torch: a device encodes its values in place, and only bytes are copied to the host. The
// bytes equal those of the codecs on the CPU, bit for bit.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <vector>

namespace motley::learn {

/// Works on the current stream.
class DeviceCodec {
 public:
  explicit DeviceCodec(at::Device device);
  /// `values`: flat floats. Returns flat bytes. `bits`: 32, 16, 8, 4 or 2.
  [[nodiscard]] at::Tensor encode(const at::Tensor& values, int bits) const;
  /// The inverse; `count`: number of values.
  [[nodiscard]] at::Tensor decode(const at::Tensor& bytes, int bits, std::int64_t count) const;
  /// Encodes p = values + residual and leaves in `residual` what rounding lost; where p is not finite, `residual` stays unchanged. Adds
  /// |p|^2 and the squared norm of the new residual to `squared_norms`, two doubles.
  [[nodiscard]] at::Tensor encode_with_feedback(const at::Tensor& values, at::Tensor residual, int bits, at::Tensor squared_norms) const;

 private:
  [[nodiscard]] at::Tensor decode_blocks(const at::Tensor& bytes, int bits, std::int64_t count) const;
  std::map<int, at::Tensor> levels_;  // by bits, then by code: the value relative to the scale of its block
};

}  // namespace motley::learn
