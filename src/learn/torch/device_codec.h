// The codecs of room codec in torch's operations: a device codes its values where they lie, so that only bytes are copied from it. They are
// the bytes that the codecs make on a processor, bit for bit.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/step_io.h"
#include "learn/torch/lanes.h"

namespace motley::learn {

/// Everything goes to the current stream.
class DeviceCodec {
 public:
  explicit DeviceCodec(at::Device device);
  /// `values`: flat floats. Flat bytes. `bits`: 32, 16, 8, 4 or 2.
  [[nodiscard]] at::Tensor encode(const at::Tensor& values, int bits) const;
  /// The opposite.
  [[nodiscard]] at::Tensor decode(const at::Tensor& bytes, int bits, std::int64_t count) const;
  /// Encodes p = values + residual, and keeps back in `residual` what rounding loses; a vector that is not finite leaves it as it was. To
  /// `kept`, two doubles, is added |p|^2 and the square of what was kept back.
  [[nodiscard]] at::Tensor encode_with_feedback(const at::Tensor& values, at::Tensor residual, int bits, at::Tensor kept) const;

 private:
  [[nodiscard]] at::Tensor decode_blocks(const at::Tensor& bytes, int bits, std::int64_t count) const;
  std::map<int, at::Tensor> levels_;  // by bits, then by code: the value, as a part of its block's scale
};

/// The slices of a contribution that are still to leave.
class SlicesLeft {
 public:
  void begin(const GradientEncoding& coding) { left_ = coding.slices; }
  /// Those that lie within [first, last), ascending: they are left no more.
  std::vector<GradientEncoding::Slice> take(std::uint64_t first, std::uint64_t last);

 private:
  std::vector<GradientEncoding::Slice> left_;  // ascending
};

/// A contribution on its way to bytes, slice by slice, as GradientEncoding wants it. What rounding keeps back stays on the device from one
/// to the next.
class DeviceCoder {
 public:
  DeviceCoder(const Lanes& lanes, std::uint64_t values, at::Device device);

  void begin(const GradientEncoding& coding);
  /// The slices within [first, last) of `flat` that are not coded yet, now that the compute lane has made them. The out lane copies their
  /// bytes into `out` (bytes of the host, as long as the floats would be), each to where its floats would begin.
  void code(std::uint64_t first, std::uint64_t last, const at::Tensor& flat, const at::Tensor& out);
  /// Two doubles on the device: see DeviceCodec.
  [[nodiscard]] const at::Tensor& kept() const { return kept_; }

 private:
  const Lanes& lanes_;
  DeviceCodec codec_;
  std::uint64_t values_;
  at::Tensor residual_;  // flat; undefined: nothing was kept back yet
  at::Tensor kept_;
  SlicesLeft left_;
  std::vector<at::Tensor> leaving_;  // being copied
  Mark made_;
};

/// |kept back| / |p|, of what kept() became on the host.
[[nodiscard]] double residual_ratio(const double* kept);

}  // namespace motley::learn
