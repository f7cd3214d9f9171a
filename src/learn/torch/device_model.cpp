#include "learn/torch/device_model.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "base/check.h"
#include "learn/constants.h"

namespace motley::learn {

namespace {

bool aligned(const at::Tensor& tensor) { return reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % kernel_alignment == 0; }

/// A view of a flat buffer with an autograd version of its own: values of a later block may be written while those of an earlier one are in
/// use.
at::Tensor view(const at::Tensor& flat, const Tensor& of, at::IntArrayRef shape) {
  return part(flat, of.offset, of.offset + of.count).view(shape).variable_data();
}

}  // namespace

DeviceModel::DeviceModel(Model model, at::Device device, bool bf16)
    : model_(std::move(model)), device_(device), lanes_(device), blocks_(model_.blocks.size()), bf16_(bf16) {
  const auto guard = lanes_.on(Lane::compute);
  values_ = at::zeros({static_cast<std::int64_t>(shape().values())}, at::TensorOptions(at::kFloat).device(device_));
  gradient_ = at::zeros_like(values_);
  if (bf16_) rounded_ = at::zeros_like(values_, at::kBFloat16);
  if (bf16_) rounded_gradient_ = at::zeros_like(rounded_);
  bind();
  lanes_.settle();
}

void DeviceModel::bind() {
  for (std::size_t t = 0; t < model_.slots.size(); ++t) {
    Slot& slot = *model_.slots[t];
    const Tensor& tensor = shape().tensors[t];
    const bool statistic = slot.kind != TensorKind::parameter;
    BlockTensors& block = blocks_[tensor.block];
    const at::Tensor flat = view(values_, tensor, slot.shape);
    const at::Tensor values = in_kernel_format(slot, flat);
    const bool copied = !values.is_same(flat);
    const Range range{tensor.offset, tensor.offset + tensor.count};
    const auto in_bf16 = [&](const at::Tensor& all) { return bf16_ ? view(all, tensor, slot.shape) : at::Tensor(); };
    if (copied) block.kernel_copies.push_back({values, flat, in_bf16(rounded_), range, statistic});
    slot.tensor = copied ? values.variable_data() : flat;  // autograd does not count filling the copy as a change of the parameter
    if (statistic) continue;
    if (block.bound.empty()) block.first = range.first;
    block.last = range.last;
    slot.tensor.requires_grad_(true);
    block.bound.push_back({slot.tensor, view(gradient_, tensor, slot.shape), in_bf16(rounded_gradient_), range});
  }
}

/// `flat` itself, or a copy in another type, memory format or alignment.
at::Tensor DeviceModel::in_kernel_format(const Slot& slot, const at::Tensor& flat) const {
  const bool rounded = bf16_ && slot.kind == TensorKind::parameter && !slot.exact;
  const bool channels_last = device_.is_cuda() && slot.kind == TensorKind::parameter && flat.dim() == 4;
  if (!rounded && !channels_last && aligned(flat)) return flat;
  const at::Tensor own = rounded ? flat.to(at::kBFloat16) : flat.clone();
  return channels_last ? own.contiguous(at::MemoryFormat::ChannelsLast) : own;
}

void DeviceModel::expect(const Range& range, bool rounded) {
  for (BlockTensors& block : blocks_) {
    if (block.last <= range.first || block.first >= range.last) continue;
    for (KernelCopy& copy : block.kernel_copies) {
      if (copy.from_rounded == rounded || copy.range.last <= range.first || copy.range.first >= range.last) continue;
      check(copy.values.scalar_type() == at::kBFloat16, "only weights that are computed with in bf16 are received as bf16");
      lanes_.settle();
      if (rounded)
        copy.rounded.copy_(copy.flat);
      else
        copy.flat.copy_(copy.rounded);
      lanes_.settle();
      copy.from_rounded = rounded;
    }
  }
}

void DeviceModel::round_gradients(std::span<const Range> ranges) {
  for (BlockTensors& block : blocks_) {
    for (Bound& bound : block.bound) {
      const auto behind =
          std::partition_point(ranges.begin(), ranges.end(), [&](const Range& range) { return range.last <= bound.range.first; });
      const bool rounds = behind != ranges.end() && behind->first < bound.range.last;
      check(!rounds || bound.parameter.scalar_type() == at::kBFloat16, "only gradients of weights in bf16 are computed as bf16");
      if (bound.rounds && !rounds) bound.rounded.zero_();
      bound.rounds = rounds;
    }
  }
}

DeviceModel::Passing DeviceModel::begin(const at::Tensor& inputs, Mode mode) {
  if (mode == Mode::training) {
    const c10::AutoGradMode graph(false);
    forget();                    // the last pass may not have ended
    statistics_before_.reset();  // frees its memory before the new one is allocated
    statistics_before_ = part(values_, shape().parameters, shape().values()).clone();
  }
  return {inputs, 0};
}

at::Tensor DeviceModel::forward(const at::Tensor& inputs, Mode mode, const Before& before) {
  Passing passing = begin(inputs, mode);
  return pass(passing, mode, blocks(), before) ? passing.x.detach() : at::Tensor();
}

bool DeviceModel::pass(Passing& passing, Mode mode, std::size_t until, const Before& before) {
  const c10::AutoGradMode graph(mode == Mode::training);
  at::Tensor& x = passing.x;
  for (std::size_t& b = passing.block; b < until; ++b) {
    BlockTensors& block = blocks_[b];
    if (!before(b)) return false;
    for (KernelCopy& copy : block.kernel_copies) copy.values.copy_(copy.from_rounded ? copy.rounded : copy.flat);
    // Each block has an autograd graph of its own, so that its gradient is final before backward reaches the block in front of it.
    if (mode == Mode::training && b > 0) x = x.detach().requires_grad_(true);
    at::Tensor y = model_.blocks[b]->forward(x, mode);
    for (KernelCopy& copy : block.kernel_copies)
      if (copy.statistic) copy.flat.copy_(copy.values);  // forward has changed it
    if (mode == Mode::training) {
      block.input = x;
      block.output = y;
    }
    // A picture of one channel is in both memory formats at once, and torch would go on with the slower one.
    x = device_.is_cuda() && y.dim() == 4 ? y.contiguous(at::MemoryFormat::ChannelsLast) : std::move(y);
  }
  return true;
}

at::Tensor DeviceModel::score(const at::Tensor& logits, const at::Tensor& targets, bool wants_gradient) {
  LossFunction::Tensors loss = model_.loss->on_device(logits, targets, wants_gradient);
  sums_ = std::move(loss.sums);
  return std::move(loss.gradient);
}

void DeviceModel::backward(at::Tensor gradient, const std::function<void(std::size_t)>& after) {
  for (std::size_t b = blocks_.size(); b-- > 0;) {
    BlockTensors& block = blocks_[b];
    if (block.output.requires_grad()) block.output.backward(gradient);
    const c10::AutoGradMode graph(false);
    for (Bound& bound : block.bound) {
      at::Tensor& made = bound.parameter.mutable_grad();
      at::Tensor& to = bound.rounds ? bound.rounded : bound.gradient;
      if (made.defined())
        to.copy_(made);
      else
        to.zero_();
      made.reset();
    }
    if (b > 0) gradient = block.input.grad();
    block.input.reset();
    block.output.reset();
    after(b);
  }
  const std::uint64_t parameters = shape().parameters;
  const std::uint64_t all = shape().values();
  if (parameters < all) part(gradient_, parameters, all).copy_(part(values_, parameters, all) - statistics_before_);
  after(blocks_.size());
}

void DeviceModel::rewind() {
  if (statistics_before_.defined()) part(values_, shape().parameters, shape().values()).copy_(statistics_before_);
}

void DeviceModel::forget() {
  for (BlockTensors& block : blocks_) {
    block.input.reset();
    block.output.reset();
    for (Bound& bound : block.bound) bound.parameter.mutable_grad().reset();
  }
}

}  // namespace motley::learn
