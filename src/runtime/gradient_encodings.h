// Decides in which encoding a device leaves each gradient. A device that encodes keeps the rounding error (error feedback); this tells it
// how to rescale that residual, and remembers whether there is one.
#pragma once
#include <cstdint>
#include <optional>

#include "base/step_io.h"
#include "store/layout.h"
#include "wire/message.h"

namespace motley::runtime {

/// Computing thread only.
class GradientEncodings {
 public:
  struct Options {
    bool bf16_transfer = false;  // the device computes in bf16, and so are its gradients
    bool local_steps = false;    // contributions are deltas, which do not scale with the learning rate
  };
  struct Request {
    GradientEncoding encoding;
    std::uint8_t bits{};
  };
  GradientEncodings(const store::Layout& layout, const Options& options) : layout_(layout), options_(options) {}

  /// For the contribution of `samples` samples to this order; none: as floats.
  [[nodiscard]] std::optional<Request> next(const wire::Order& order, std::uint64_t samples);
  /// The device has encoded a gradient as requested: it may keep a residual.
  void encoded(const Request& request);
  /// A contribution in fp32 was finite, and has taken the residual along.
  void sent_residual() { has_residual_ = false; }
  /// The device serves another member: residuals do not count.
  void reset();

 private:
  const store::Layout& layout_;
  Options options_;
  bool has_residual_ = false;
  double unit_ = 0;  // samples * rate of the last encoded contribution; 0: none
};

}  // namespace motley::runtime
