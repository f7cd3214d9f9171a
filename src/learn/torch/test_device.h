// For tests of the parts of a device's step: a small DeviceModel on the CPU, and an io that counts.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "base/step_io.h"
#include "learn/test_samples.h"
#include "learn/torch/device_model.h"

namespace motley::learn {

/// Batch norm gives resnet20 statistics; mlp has none.
inline const ModelSpec small_mlp{.kind = "mlp", .hidden = {5}};
inline const ModelSpec small_resnet{.kind = "resnet20", .hidden = {}, .width = 2};

inline Model small_model(const ModelSpec& spec) { return std::move(make_model(spec, small_pictures()->shape()).value()); }

/// Values 1, 2, 3, ... divided by 64: exact in fp32.
inline std::vector<float> counted(std::uint64_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + 1) / 64;
  return values;
}

inline std::vector<float> floats_of(const at::Tensor& flat) { return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()}; }

/// All values are present until `waits_left` calls of wait_for() were made.
struct CountingIo : StepIo {
  using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  bool wait_for(std::uint64_t first, std::uint64_t last) override { return waited.emplace_back(first, last), waits_left-- > 0; }
  void gradient_ready(std::uint64_t first, std::uint64_t last) override { ready.emplace_back(first, last); }
  void encoded_gradient_ready(std::uint64_t first, std::uint64_t last) override { encoded.emplace_back(first, last); }
  int waits_left = 1000;
  Ranges waited, ready, encoded;
};

}  // namespace motley::learn
