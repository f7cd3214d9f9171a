// A gradient of which the weights' part leaves as what it is, numbers of 16 bits, and the rest as floats: nothing is coded, nothing kept
// back.
#pragma once
#include <cstdint>
#include <span>

#include "base/step_io.h"
#include "learn/torch/device_codec.h"
#include "learn/torch/device_model.h"

namespace motley::learn {

class GradientSender {
 public:
  /// For the next gradient; null, or one that wants it otherwise: there is nothing to do here.
  void begin(DeviceModel& model, const GradientEncoding* coding);
  /// Whether this gradient is to leave so.
  explicit operator bool() const { return coding_ != nullptr; }
  /// The slices within [first, last) that have not left yet, by the current lane, into `out` (bytes of the host, as long as the floats
  /// would be), each to where its floats would begin.
  void send(const DeviceModel& model, std::uint64_t first, std::uint64_t last, const at::Tensor& out);
  /// Of what has left as floats, as it is on the host: what the length of model.rounded_gradient() lacks. 0 where nothing leaves so.
  [[nodiscard]] double squares_in_floats(std::span<const float> parameters) const;

 private:
  const GradientEncoding* coding_ = nullptr;  // as it wants it, or null
  SlicesLeft left_;
};

}  // namespace motley::learn
