// Memory of the host that a device copies from and to by itself, and the ways in and out through it. What lies in pinned memory already
// (pins.h) needs no copy on the way.
#pragma once
#include <ATen/ATen.h>

#include <algorithm>
#include <span>

#include "learn/pins.h"
#include "learn/torch/device_model.h"
#include "learn/torch/lanes.h"

namespace motley::learn {

/// Plain memory where the device is the CPU.
inline at::Tensor pinned(std::uint64_t count, at::ScalarType type, at::Device device) {
  return at::empty({static_cast<std::int64_t>(count)}, at::TensorOptions(type).pinned_memory(!device.is_cpu()));
}

/// The memory itself, as a tensor.
inline at::Tensor as_tensor(std::span<const float> values) {
  return at::from_blob(const_cast<float*>(values.data()), {static_cast<std::int64_t>(values.size())}, at::kFloat);  // NOLINT
}

/// Values of the host on their way to a flat tensor.
class Inlet {
 public:
  Inlet(const Lanes& lanes, std::uint64_t values, at::Device device) : lanes_(lanes), room_(pinned(values, at::kFloat, device)) {}

  /// `to`[first...] = values, before what the compute lane does next; what it does now must not read them. The same place of the room is
  /// written again, and values that are pinned may change, only when the copy is done: see wait().
  void take(std::uint64_t first, std::span<const float> values, const at::Tensor& to) {
    const std::uint64_t last = first + values.size();
    const bool direct = is_pinned(std::as_bytes(values));
    if (!direct) std::copy(values.begin(), values.end(), room_.data_ptr<float>() + first);
    {
      const auto guard = lanes_.on(Lane::in);
      part(to, first, last).copy_(direct ? as_tensor(values) : part(room_, first, last), /*non_blocking=*/true);
      there_.set(lanes_, Lane::in);
    }
    there_.hold(lanes_, Lane::compute);
  }
  /// All that was taken is there.
  void wait() { there_.wait(); }

 private:
  const Lanes& lanes_;
  at::Tensor room_;
  Mark there_;
};

}  // namespace motley::learn
