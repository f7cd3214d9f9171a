// Encodes a gradient or delta on the device, slice by slice, as GradientEncoding asks, and copies the bytes to the host. Error feedback:
// the residual of rounding stays on the device and is added to the next contribution.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "base/step_io.h"
#include "learn/torch/device_codec.h"
#include "learn/torch/lanes.h"
#include "learn/torch/unsent_slices.h"

namespace motley::learn {

class DeviceEncoder {
 public:
  /// `values`: length of the flat buffer. Keeps a reference to the lanes.
  DeviceEncoder(const Lanes& lanes, std::uint64_t values, at::Device device);

  void begin(const GradientEncoding& encoding);
  /// Encodes the slices within [first, last) of `flat` that are not encoded yet, on the compute lane, which has computed them. The out lane
  /// copies their bytes into `out` (bytes of the host, as long as the floats would be), each slice to where its floats would begin.
  void encode(std::uint64_t first, std::uint64_t last, const at::Tensor& flat, const at::Tensor& out);
  /// Two doubles on the device, over all slices since begin(): see DeviceCodec::encode_with_feedback().
  [[nodiscard]] const at::Tensor& squared_norms() const { return squared_norms_; }

 private:
  const Lanes& lanes_;
  DeviceCodec codec_;
  std::uint64_t values_;
  at::Tensor residual_;  // flat; undefined before the first contribution
  at::Tensor squared_norms_;
  UnsentSlices unsent_;
  std::vector<at::Tensor> in_flight_;  // the out lane may still copy them
  Mark made_;
};

/// Norm of what was kept back, relative to the norm of what was to be encoded; from squared_norms() on the host.
[[nodiscard]] double residual_ratio(const double* squared_norms);

}  // namespace motley::learn
