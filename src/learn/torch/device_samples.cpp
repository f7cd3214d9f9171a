#include "learn/torch/device_samples.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace motley::learn {

DeviceSamples::DeviceSamples(std::shared_ptr<const DataSet> data, const Options& options)
    : data_(std::move(data)), options_(options), batch_(data_->shape()) {}

at::Tensor DeviceSamples::to_device(const at::Tensor& inputs) const {
  if (data_->shape().text) return inputs.to(options_.device);
  const at::Tensor there = inputs.to(options_.device).to(options_.type);
  return options_.channels_last ? there.contiguous(at::MemoryFormat::ChannelsLast) : there;
}

/// Copies the part to the device at the first call, in pieces.
const std::optional<DeviceSamples::ResidentSamples>& DeviceSamples::kept(Part part) {
  State& state = part == Part::training ? training_ : evaluation_;
  if (std::exchange(state.tried, true)) return state.kept;
  const std::uint64_t count = data_->size(part);
  const SampleShape& shape = data_->shape();
  const std::uint64_t width = shape.text ? sizeof(std::int64_t) : c10::elementSize(options_.type);
  if (options_.device.is_cpu() || count * static_cast<std::uint64_t>(shape.inputs()) * width > options_.max_bytes) return state.kept;
  std::vector<std::uint32_t> samples;
  ResidentSamples made;
  for (std::uint64_t first = 0; first < count; first += resident_copy_samples) {
    samples.resize(std::min(resident_copy_samples, count - first));
    std::iota(samples.begin(), samples.end(), static_cast<std::uint32_t>(first));
    batch_.gather(*data_, part, samples);
    const at::Tensor inputs = to_device(batch_.inputs);
    if (!made.inputs.defined()) {
      std::vector<std::int64_t> sizes = inputs.sizes().vec();
      sizes[0] = static_cast<std::int64_t>(count);
      made.inputs = at::empty(sizes, inputs.options(), inputs.suggest_memory_format());
      made.targets = at::empty({sizes[0], shape.targets()}, batch_.targets.options().device(options_.device));
    }
    const auto rows = static_cast<std::int64_t>(samples.size());
    made.inputs.narrow(0, static_cast<std::int64_t>(first), rows).copy_(inputs);
    made.targets.narrow(0, static_cast<std::int64_t>(first), rows).copy_(batch_.targets);
  }
  if (made.inputs.defined()) state.kept = std::move(made);
  return state.kept;
}

DeviceSamples::Gathered DeviceSamples::gather(Part part, std::span<const std::uint32_t> samples) {
  const bool gathered = part == Part::training && is_ahead(samples);
  std::optional<Ahead> ahead = std::exchange(ahead_, std::nullopt);  // the host's batch holds one
  return gathered ? std::move(ahead->gathered) : gather_now(part, samples);
}

bool DeviceSamples::is_ahead(std::span<const std::uint32_t> samples) const {
  return ahead_ && std::equal(samples.begin(), samples.end(), ahead_->samples.begin(), ahead_->samples.end());
}

bool DeviceSamples::at_hand(std::span<const std::uint32_t> samples) {
  return options_.device.is_cpu() || kept(Part::training) || is_ahead(samples);
}

void DeviceSamples::gather_ahead(std::span<const std::uint32_t> samples) {
  ahead_.reset();
  ahead_ = Ahead{{samples.begin(), samples.end()}, gather_now(Part::training, samples)};
}

DeviceSamples::Gathered DeviceSamples::gather_now(Part part, std::span<const std::uint32_t> samples) {
  const auto& all = kept(part);
  if (!all) {
    batch_.gather(*data_, part, samples);
    return {to_device(batch_.inputs), batch_.targets.to(options_.device).flatten()};
  }
  indices_ = at::empty({static_cast<std::int64_t>(samples.size())}, at::TensorOptions(at::kLong).pinned_memory(true));
  std::copy(samples.begin(), samples.end(), indices_.data_ptr<std::int64_t>());
  const at::Tensor there = indices_.to(options_.device, /*non_blocking=*/true);
  at::Tensor inputs = all->inputs.index_select(0, there);
  if (options_.channels_last && inputs.dim() == 4) inputs = inputs.contiguous(at::MemoryFormat::ChannelsLast);
  return {std::move(inputs), all->targets.index_select(0, there).flatten()};
}

}  // namespace motley::learn
