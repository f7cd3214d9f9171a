#include "learn/torch/device_model.h"

#include <c10/core/GradMode.h>

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
    : model_(std::move(model)), device_(device), lanes_(device), cuts_(model_.blocks.size()) {
  const auto guard = lanes_.on(Lane::compute);
  const auto floats = at::TensorOptions(at::kFloat).device(device_);
  values_ = at::zeros({static_cast<std::int64_t>(shape().values())}, floats);
  gradient_ = at::zeros_like(values_);
  if (half) {
    half_ = at::zeros({static_cast<std::int64_t>(shape().parameters)}, floats.dtype(at::kBFloat16));
    half_gradient_ = at::zeros_like(half_);
  }
  bind();
  lanes_.settle();
}

void DeviceModel::bind() {
  for (std::size_t t = 0; t < model_.slots.size(); ++t) {
    Slot& slot = *model_.slots[t];
    const Tensor& tensor = shape().tensors[t];
    const bool half = half_.defined() && slot.kind == TensorKind::parameter && !slot.exact;
    Cut& cut = cuts_[tensor.block];
    if (slot.kind != TensorKind::parameter) {
      slot.tensor = view(values_, tensor, slot.shape);
      if (!aligned(slot.tensor)) {
        cut.apart.push_back({at::zeros_like(slot.tensor), {}, slot.tensor, {}});
        slot.tensor = cut.apart.back().values;
      }
      continue;
    }
    if (cut.bound.empty()) cut.first = tensor.offset;
    cut.last = tensor.offset + tensor.count;
    cut.bound.push_back(bind(cut, tensor, slot.shape, half));
    slot.tensor = cut.bound.back().parameter;
  }
}

DeviceModel::Bound DeviceModel::bind(Cut& cut, const Tensor& tensor, at::IntArrayRef shape, bool half) {
  Bound bound{view(half ? half_ : values_, tensor, shape), view(half ? half_gradient_ : gradient_, tensor, shape)};
  if (!aligned(bound.parameter) || !aligned(bound.gradient)) {
    cut.apart.push_back({at::zeros_like(bound.parameter), at::zeros_like(bound.gradient), bound.parameter, bound.gradient});
    bound = {cut.apart.back().values.variable_data(), cut.apart.back().gradient};
  }
  bound.parameter.requires_grad_(true);
  return bound;
}

at::Tensor DeviceModel::forward(const at::Tensor& inputs, Mode mode, const std::function<bool(std::size_t)>& before) {
  const c10::AutoGradMode graph(mode == Mode::training);
  if (mode == Mode::training) {
    before_.reset();  // should there be no memory for it
    before_ = part(values_, shape().parameters, shape().values()).clone();
    if (!wiped_) wipe();
    wiped_ = false;
  }
  at::Tensor x = inputs;
  for (std::size_t b = 0; b < cuts_.size(); ++b) {
    Cut& cut = cuts_[b];
    if (!before(b)) return {};
    bring_in(cut, mode);
    // Each block has a graph of its own, so that its gradient is done before that of the block in front of it begins.
    if (mode == Mode::training && b > 0) x = x.detach().requires_grad_(true);
    at::Tensor y = model_.blocks[b]->forward(x, mode);
    for (Apart& apart : cut.apart)
      if (!apart.gradient.defined()) apart.flat_values.copy_(apart.values);  // statistics have moved
    if (mode == Mode::training) {
      cut.input = x;
      cut.output = y;
    }
    // A picture of one channel lies both ways at once, and torch would go on with the slower one.
    x = device_.is_cuda() && y.dim() == 4 ? y.contiguous(at::MemoryFormat::ChannelsLast) : std::move(y);
  }
  return x.detach();
}

/// What is computed with elsewhere than in values().
void DeviceModel::bring_in(Cut& cut, Mode mode) {
  if (half_.defined() && cut.first < cut.last) part(half_, cut.first, cut.last).copy_(part(values_, cut.first, cut.last));
  for (Apart& apart : cut.apart) {
    apart.values.copy_(apart.flat_values);
    if (mode == Mode::training && apart.gradient.defined()) apart.gradient.zero_();
  }
}

at::Tensor DeviceModel::score(const at::Tensor& logits, const at::Tensor& targets, bool wants_gradient) {
  const c10::AutoGradMode graph(false);
  const at::Tensor rows = logits.to(at::kFloat).reshape({targets.size(0), -1});
  const at::Tensor logarithms = at::log_softmax(rows, 1);
  const at::Tensor wanted = targets.unsqueeze(1);
  const at::Tensor loss = logarithms.gather(1, wanted).sum().neg().to(at::kDouble);
  const at::Tensor hits = rows.argmax(1).eq(targets).sum().to(at::kDouble);
  sums_ = at::stack({loss, hits});
  if (!wants_gradient) return {};
  at::Tensor gradient = logarithms.exp();
  gradient.scatter_add_(1, wanted, at::full_like(wanted, -1, gradient.options()));
  gradient.div_(static_cast<double>(rows.size(0)));
  return gradient.reshape(logits.sizes()).to(logits.scalar_type());
}

void DeviceModel::backward(at::Tensor gradient, const std::function<void(std::size_t)>& after) {
  for (std::size_t b = cuts_.size(); b-- > 0;) {
    Cut& cut = cuts_[b];
    for (Bound& bound : cut.bound) bound.parameter.mutable_grad() = bound.gradient;
    if (cut.output.requires_grad()) cut.output.backward(gradient);  // adds into what is there
    for (Bound& bound : cut.bound) bound.parameter.mutable_grad().reset();
    if (b > 0) gradient = cut.input.grad();
    cut.input.reset();
    cut.output.reset();
    for (Apart& apart : cut.apart)
      if (apart.gradient.defined()) apart.flat_gradient.copy_(apart.gradient);
    if (half_.defined() && cut.first < cut.last) part(gradient_, cut.first, cut.last).add_(part(half_gradient_, cut.first, cut.last));
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

void DeviceModel::wipe() {
  gradient_.zero_();
  if (half_.defined()) half_gradient_.zero_();
  wiped_ = true;
}

void DeviceModel::forget() {
  for (Cut& cut : cuts_) {
    cut.input.reset();
    cut.output.reset();
  }
}

}  // namespace motley::learn
