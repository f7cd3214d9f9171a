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
class HostToDevice {
 public:
  HostToDevice(const Lanes& lanes, std::uint64_t values, at::Device device)
      : lanes_(lanes), device_(device), staging_(pinned(values, at::kFloat, device)) {}

  /// `to`[first...] = the values that these bytes are, in the type of `to`; the compute lane reads them after join(), and what it does now
  /// must not. The same place of the room is written again, and bytes that are pinned may change, only when the copy is done: see wait().
  void take(std::uint64_t first, std::span<const std::byte> bytes, const at::Tensor& to) {
    const bool direct = is_pinned(bytes);
    std::byte* const place = static_cast<std::byte*>(staging_.data_ptr()) + first * sizeof(float);
    if (!direct) std::copy(bytes.begin(), bytes.end(), place);
    at::Tensor there = part(to, first, first + bytes.size() / to.element_size());
    void* const from = direct ? const_cast<std::byte*>(bytes.data()) : place;  // NOLINT(cppcoreguidelines-pro-type-const-cast): only read
    const auto guard = lanes_.on(Lane::in);
    there.copy_(at::from_blob(from, there.sizes(), there.scalar_type()), /*non_blocking=*/true);
  }
  /// Before what the compute lane does next, all that was taken is there.
  void join() {
    there_.set(lanes_, Lane::in);
    there_.hold(lanes_, Lane::compute);
  }
  /// Bytes that stand for values from `first` on, joined; where they are then, on the device.
  at::Tensor take_bytes(std::uint64_t first, std::span<const std::byte> bytes) {
    if (!coded_.defined()) {
      coded_ = at::empty({staging_.numel() * static_cast<std::int64_t>(sizeof(float))}, at::TensorOptions(at::kByte).device(device_));
      lanes_.settle();  // whatever was computed in that memory before is done
    }
    const auto begin = static_cast<std::int64_t>(first * sizeof(float));
    const auto size = static_cast<std::int64_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(staging_.data_ptr()) + begin);
    at::Tensor there = coded_.narrow(0, begin, size);
    {
      const auto guard = lanes_.on(Lane::in);
      there.copy_(staging_.view(at::kByte).narrow(0, begin, size), /*non_blocking=*/true);
    }
    join();
    return there;
  }
  /// All that was taken is there.
  void wait() { there_.wait(); }

 private:
  const Lanes& lanes_;
  at::Device device_;
  at::Tensor staging_;
  at::Tensor coded_;  // on the device; undefined: nothing came coded
  Mark there_;
};

}  // namespace motley::learn
