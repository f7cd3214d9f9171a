#include "learn/torch/gradient_download.h"

#include <algorithm>

#include "learn/torch/pinned.h"

namespace motley::learn {

GradientDownload::GradientDownload(DeviceModel& model)
    : model_(model),
      computed_(model.blocks() + 1),
      copied_(model.blocks() + 1),
      staging_(pinned(model.shape().values(), at::kFloat, model.device())),
      norms_(at::zeros({static_cast<std::int64_t>(model.blocks())}, model.values().options())),
      scalars_(pinned(5, at::kDouble, model.device())),
      encoder_(model.lanes(), model.shape().values(), model.device()) {}

void GradientDownload::begin(std::span<float> out, const GradientEncoding* encoding) {
  out_ = out;
  direct_ = is_pinned(std::as_bytes(out));
  host_ = direct_ ? as_tensor(out) : staging_;
  encoding_ = encoding;
  bf16_sender_.begin(model_, encoding);
  if (encodes()) encoder_.begin(*encoding);
}

void GradientDownload::send(std::size_t block) {
  const auto [first, last] = model_.range(block);
  if (first == last) return;
  const Lanes& lanes = model_.lanes();
  const bool statistics = block == model_.blocks();
  const std::uint64_t computed_until = statistics ? last : model_.shape().parameters;  // backward has done all blocks behind this one
  if (encodes()) {
    encoder_.encode(first, computed_until, model_.gradient(), host_.view(at::kByte));
  } else {
    computed_[block].set(lanes, Lane::compute);
    computed_[block].hold(lanes, Lane::out);
  }
  const auto guard = lanes.on(Lane::out);
  if (bf16_sender_.active())
    bf16_sender_.send(model_, first, computed_until, host_.view(at::kByte));
  else if (encoding_ == nullptr)
    part(host_, first, last).copy_(part(model_.gradient(), first, last), /*non_blocking=*/true);
  copied_[block].set(lanes, Lane::out);
  if (statistics) return;
  at::Tensor norm = norms_.select(0, static_cast<std::int64_t>(block));
  const at::Tensor& flat = bf16_sender_.active() ? model_.rounded_gradient() : model_.gradient();
  at::linalg_vector_norm_out(norm, part(flat, first, last), 2, /*dim=*/{}, /*keepdim=*/false, at::kFloat);
}

void GradientDownload::send_scalars() {
  const auto guard = model_.lanes().on(Lane::out);
  const at::Tensor squared_norm = norms_.to(at::kDouble).square().sum().unsqueeze(0);
  scalars_.copy_(at::cat({model_.sums(), squared_norm, encoder_.squared_norms()}), /*non_blocking=*/true);
  scalars_copied_.set(model_.lanes(), Lane::out);
}

void GradientDownload::deliver(std::size_t block, StepIo& io) {
  const auto [first, last] = model_.range(block);
  if (first == last) return;
  copied_[block].wait();
  if (!direct_) copy_from_staging(first, last);
  if (encoding_ != nullptr)
    io.encoded_gradient_ready(first, last);
  else
    io.gradient_ready(first, last);
}

GradientDownload::Scalars GradientDownload::scalars() {
  scalars_copied_.wait();
  const double* const scalars = scalars_.data_ptr<double>();
  return {.sums = {scalars[0], scalars[1]},
          .squared_norm = scalars[2] + bf16_sender_.squared_norm_of_fp32(out_.first(model_.shape().parameters)),
          .residual = encodes() ? residual_ratio(scalars + 3) : 0};
}

/// An encoded slice is copied as a whole with the block in which it begins.
void GradientDownload::copy_from_staging(std::uint64_t first, std::uint64_t last) {
  if (encoding_ != nullptr)
    for (const GradientEncoding::Slice& slice : encoding_->slices)
      if (slice.first >= first && slice.first < last) last = std::max(last, slice.first + slice.count);
  const float* const staging = staging_.data_ptr<float>();
  std::copy(staging + first, staging + last, out_.begin() + static_cast<std::ptrdiff_t>(first));
}

}  // namespace motley::learn
