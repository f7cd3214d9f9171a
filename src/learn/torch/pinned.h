// Pinned memory of the host, which a GPU reads and writes by itself, and copies to the device through it. Data that is pinned already
// (pins.h) needs no staging copy.
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

/// A tensor that shares the memory.
inline at::Tensor as_tensor(std::span<const float> values) {
  return at::from_blob(const_cast<float*>(values.data()), {static_cast<std::int64_t>(values.size())}, at::kFloat);  // NOLINT
}

/// Copies values of the host to flat tensors of a device, on the in lane. Keeps a reference to the lanes.
class HostToDevice {
 public:
  HostToDevice(const Lanes& lanes, std::uint64_t values, at::Device device)
      : lanes_(lanes), device_(device), staging_(pinned(values, at::kFloat, device)) {}

  /// `to`[first...] = `bytes`, values in the type of `to`. The compute lane may read them after join(). Before the copy is done (wait()),
  /// the caller may neither take the same range again nor change pinned bytes.
  void take(std::uint64_t first, std::span<const std::byte> bytes, const at::Tensor& to) {
    const bool direct = is_pinned(bytes);
    std::byte* const place = static_cast<std::byte*>(staging_.data_ptr()) + first * sizeof(float);
    if (!direct) std::copy(bytes.begin(), bytes.end(), place);
    at::Tensor there = part(to, first, first + bytes.size() / to.element_size());
    void* const from = direct ? const_cast<std::byte*>(bytes.data()) : place;  // NOLINT(cppcoreguidelines-pro-type-const-cast): only read
    const auto guard = lanes_.on(Lane::in);
    there.copy_(at::from_blob(from, there.sizes(), there.scalar_type()), /*non_blocking=*/true);
  }
  /// The compute lane's next operation sees all values that were taken.
  void join() {
    there_.set(lanes_, Lane::in);
    there_.hold(lanes_, Lane::compute);
  }
  /// Copies encoded bytes of the values from `first` on, and joins. Returns them on the device.
  at::Tensor take_bytes(std::uint64_t first, std::span<const std::byte> bytes) {
    if (!encoded_.defined()) {
      encoded_ = at::empty({staging_.numel() * static_cast<std::int64_t>(sizeof(float))}, at::TensorOptions(at::kByte).device(device_));
      lanes_.settle();  // torch may reuse memory that a lane still works on
    }
    const auto begin = static_cast<std::int64_t>(first * sizeof(float));
    const auto size = static_cast<std::int64_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(staging_.data_ptr()) + begin);
    at::Tensor there = encoded_.narrow(0, begin, size);
    {
      const auto guard = lanes_.on(Lane::in);
      there.copy_(staging_.view(at::kByte).narrow(0, begin, size), /*non_blocking=*/true);
    }
    join();
    return there;
  }
  /// Waits until all copies are done.
  void wait() { there_.wait(); }

 private:
  const Lanes& lanes_;
  at::Device device_;
  at::Tensor staging_;
  at::Tensor encoded_;  // on the device; undefined before the first take_bytes()
  Mark there_;
};

}  // namespace motley::learn
