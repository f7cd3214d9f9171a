// Batches of a data set on a device. A part of the data set that is small enough stays on the device, which then gathers the batches;
// otherwise each batch is gathered on the host and copied.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "learn/constants.h"
#include "learn/dataset.h"
#include "learn/torch/batch.h"
#include "learn/torch/lanes.h"

namespace motley::learn {

class DeviceSamples {
 public:
  /// Pictures and features are converted to `type`, pictures to the channels-last format where `channels_last`.
  struct Options {
    at::Device device;
    at::ScalarType type = at::kFloat;
    bool channels_last = false;
    std::uint64_t max_bytes = resident_samples_bytes;  // of one part of the data set that is kept on the device
  };
  DeviceSamples(std::shared_ptr<const DataSet> data, const Options& options);

  struct Gathered {
    at::Tensor inputs;
    at::Tensor targets;  // flat: one class for each row of the logits
  };
  /// On the device. Earlier steps may still compute: their memory is not reused (torch keeps pinned memory until it is copied).
  Gathered gather(Part part, std::span<const std::uint32_t> samples);
  /// Gathers training samples before they are needed: a gather() of the same samples returns them. The last batch must have been read.
  void gather_ahead(std::span<const std::uint32_t> samples);
  /// True if gathering these training samples now does not make the host wait.
  [[nodiscard]] bool at_hand(std::span<const std::uint32_t> samples);

 private:
  struct ResidentSamples {
    at::Tensor inputs;
    at::Tensor targets;
  };
  [[nodiscard]] at::Tensor to_device(const at::Tensor& inputs) const;
  const std::optional<ResidentSamples>& kept(Part part);
  [[nodiscard]] bool is_ahead(std::span<const std::uint32_t> samples) const;
  Gathered gather_now(Part part, std::span<const std::uint32_t> samples);

  std::shared_ptr<const DataSet> data_;
  Options options_;
  Batch batch_;  // on the host
  struct State {
    bool tried = false;
    std::optional<ResidentSamples> kept;
  };
  State training_, evaluation_;
  at::Tensor indices_;  // on the host
  struct Ahead {
    std::vector<std::uint32_t> samples;
    Gathered gathered;
  };
  std::optional<Ahead> ahead_;
};

}  // namespace motley::learn
