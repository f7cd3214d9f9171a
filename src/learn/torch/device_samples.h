// The samples of a data set on a device: all of them, if they are few enough, so that gathering a batch is the device's work; else each
// batch is gathered on the host and copied.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "learn/dataset.h"
#include "learn/torch/batch.h"
#include "learn/torch/lanes.h"

namespace motley::learn {

class DeviceSamples {
 public:
  /// Pictures and features become `type`; pictures channels-last where `channels_last`.
  struct Options {
    at::Device device;
    at::ScalarType type = at::kFloat;
    bool channels_last = false;
    std::uint64_t most_bytes = std::uint64_t{4} << 30;  // of a part of the data set that is kept there
  };
  DeviceSamples(std::shared_ptr<const DataSet> data, const Options& options);

  struct Gathered {
    at::Tensor inputs;
    at::Tensor targets;  // flat: one class for each row of the logits
  };
  /// On the device. Steps before may still be computing: nothing of theirs is used again (torch keeps pinned memory until it is copied).
  Gathered gather(Part part, std::span<const std::uint32_t> samples);
  /// If these are the training samples that are gathered next, they have been already. What was gathered last must have been used.
  void gather_ahead(std::span<const std::uint32_t> samples);
  /// Gathering these training samples now would keep the host waiting for nothing.
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
