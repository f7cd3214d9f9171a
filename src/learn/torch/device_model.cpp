#include "learn/torch/device_model.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "base/check.h"

namespace motley::learn {

namespace {

constexpr std::uintptr_t alignment = 16;  // bytes; what convolutions read at once

bool aligned(const at::Tensor& tensor) { return reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % alignment == 0; }

/// A view of a flat buffer with a version of its own: values of a later block may come while an earlier one's are in use.
at::Tensor view(const at::Tensor& flat, const Tensor& of, at::IntArrayRef shape) {
  return part(flat, of.offset, of.offset + of.count).view(shape).variable_data();
}

}  // namespace

DeviceModel::DeviceModel(Model model, at::Device device, bool half)
    : model_(std::move(model)), device_(device), lanes_(device), cuts_(model_.blocks.size()), half_(half) {
  const auto guard = lanes_.on(Lane::compute);
  values_ = at::zeros({static_cast<std::int64_t>(shape().values())}, at::TensorOptions(at::kFloat).device(device_));
  gradient_ = at::zeros_like(values_);
  if (half_) rounded_ = at::zeros_like(values_, at::kBFloat16);
  if (half_) rounded_gradient_ = at::zeros_like(rounded_);
  bind();
  lanes_.settle();
}

void DeviceModel::bind() {
  for (std::size_t t = 0; t < model_.slots.size(); ++t) {
    Slot& slot = *model_.slots[t];
    const Tensor& tensor = shape().tensors[t];
    const bool statistic = slot.kind != TensorKind::parameter;
    Cut& cut = cuts_[tensor.block];
    const at::Tensor flat = view(values_, tensor, slot.shape);
    const at::Tensor place = place_of(slot, flat);
    const bool kernel_copies = !place.is_same(flat);
    const Range range{tensor.offset, tensor.offset + tensor.count};
    const auto in_bf16 = [&](const at::Tensor& all) { return half_ ? view(all, tensor, slot.shape) : at::Tensor(); };
    if (kernel_copies) cut.kernel_copies.push_back({place, flat, in_bf16(rounded_), range, statistic});
    slot.tensor =
        kernel_copies ? place.variable_data() : flat;  // filling the place is no change of a parameter, as far as a graph is concerned
    if (statistic) continue;
    if (cut.bound.empty()) cut.first = range.first;
    cut.last = range.last;
    slot.tensor.requires_grad_(true);
    cut.bound.push_back({slot.tensor, view(gradient_, tensor, slot.shape), in_bf16(rounded_gradient_), range});
  }
}

/// Where it is computed with: `flat` itself, or a place of its own.
at::Tensor DeviceModel::place_of(const Slot& slot, const at::Tensor& flat) const {
  const bool rounded = half_ && slot.kind == TensorKind::parameter && !slot.exact;
  const bool channels_last = device_.is_cuda() && slot.kind == TensorKind::parameter && flat.dim() == 4;
  if (!rounded && !channels_last && aligned(flat)) return flat;
  const at::Tensor own = rounded ? flat.to(at::kBFloat16) : flat.clone();
  return channels_last ? own.contiguous(at::MemoryFormat::ChannelsLast) : own;
}

void DeviceModel::expect(const Range& range, bool rounded) {
  for (Cut& cut : cuts_) {
    if (cut.last <= range.first || cut.first >= range.last) continue;
    for (KernelCopy& kernel_copies : cut.kernel_copies) {
      if (kernel_copies.came_rounded == rounded || kernel_copies.place.last <= range.first || kernel_copies.place.first >= range.last)
        continue;
      check(kernel_copies.values.scalar_type() == at::kBFloat16, "only what is computed with in bf16 comes so");
      lanes_.settle();
      if (rounded)
        kernel_copies.rounded.copy_(kernel_copies.flat);
      else
        kernel_copies.flat.copy_(kernel_copies.rounded);
      lanes_.settle();
      kernel_copies.came_rounded = rounded;
    }
  }
}

void DeviceModel::round_gradients(std::span<const Range> ranges) {
  for (Cut& cut : cuts_) {
    for (Bound& bound : cut.bound) {
      const auto behind =
          std::partition_point(ranges.begin(), ranges.end(), [&](const Range& range) { return range.last <= bound.place.first; });
      const bool rounds = behind != ranges.end() && behind->first < bound.place.last;
      check(!rounds || bound.parameter.scalar_type() == at::kBFloat16, "only gradients of what is computed with in bf16 are such numbers");
      if (bound.rounds && !rounds) bound.rounded.zero_();
      bound.rounds = rounds;
    }
  }
}

DeviceModel::Passing DeviceModel::begin(const at::Tensor& inputs, Mode mode) {
  if (mode == Mode::training) {
    const c10::AutoGradMode graph(false);
    forget();         // should a pass have come to no end
    before_.reset();  // should there be no memory for it
    before_ = part(values_, shape().parameters, shape().values()).clone();
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
    Cut& cut = cuts_[b];
    if (!before(b)) return false;
    for (KernelCopy& kernel_copies : cut.kernel_copies)
      kernel_copies.values.copy_(kernel_copies.came_rounded ? kernel_copies.rounded : kernel_copies.flat);
    // Each block has a graph of its own, so that its gradient is done before that of the block in front of it begins.
    if (mode == Mode::training && b > 0) x = x.detach().requires_grad_(true);
    at::Tensor y = model_.blocks[b]->forward(x, mode);
    for (KernelCopy& kernel_copies : cut.kernel_copies)
      if (kernel_copies.statistic) kernel_copies.flat.copy_(kernel_copies.values);  // it has moved
    if (mode == Mode::training) {
      cut.input = x;
      cut.output = y;
    }
    // A picture of one channel lies both ways at once, and torch would go on with the slower one.
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
  for (std::size_t b = cuts_.size(); b-- > 0;) {
    Cut& cut = cuts_[b];
    if (cut.output.requires_grad()) cut.output.backward(gradient);
    const c10::AutoGradMode graph(false);
    for (Bound& bound : cut.bound) {
      at::Tensor& made = bound.parameter.mutable_grad();
      at::Tensor& to = bound.rounds ? bound.rounded : bound.gradient;
      if (made.defined())
        to.copy_(made);
      else
        to.zero_();
      made.reset();
    }
    if (b > 0) gradient = cut.input.grad();
    cut.input.reset();
    cut.output.reset();
    after(b);
  }
  const std::uint64_t parameters = shape().parameters;
  const std::uint64_t all = shape().values();
  if (parameters < all) part(gradient_, parameters, all).copy_(part(values_, parameters, all) - before_);
  after(cuts_.size());
}

void DeviceModel::rewind() {
  if (before_.defined()) part(values_, shape().parameters, shape().values()).copy_(before_);
}

void DeviceModel::forget() {
  for (Cut& cut : cuts_) {
    cut.input.reset();
    cut.output.reset();
    for (Bound& bound : cut.bound) bound.parameter.mutable_grad().reset();
  }
}

}  // namespace motley::learn
