#include "learn/torch/device_encoder.h"

#include <c10/core/GradMode.h>

#include <cmath>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "codec/format.h"
#include "learn/torch/device_model.h"

namespace motley::learn {

namespace {

/// Size of an encoded slice of whole blocks, or of one in fp32 or bf16.
std::int64_t encoded_bytes(const GradientEncoding::Slice& slice) {
  constexpr int byte_bits = 8;
  constexpr auto block = static_cast<std::int64_t>(codec::block_values);
  const auto count = static_cast<std::int64_t>(slice.count);
  if (slice.bits >= bf16_bits) return count * slice.bits / byte_bits;
  return count / block * (static_cast<std::int64_t>(codec::scale_bytes) + (block * slice.bits + byte_bits - 1) / byte_bits);
}

}  // namespace

DeviceEncoder::DeviceEncoder(const Lanes& lanes, std::uint64_t values, at::Device device) : lanes_(lanes), codec_(device), values_(values) {
  squared_norms_ = at::zeros({2}, at::TensorOptions(at::kDouble).device(device));
}

void DeviceEncoder::begin(const GradientEncoding& encoding) {
  const c10::AutoGradMode graph(false);
  const auto guard = lanes_.on(Lane::compute);
  in_flight_.clear();
  unsent_.begin(encoding);
  squared_norms_.zero_();
  if (!residual_.defined())
    residual_ = at::zeros({static_cast<std::int64_t>(values_)}, squared_norms_.options().dtype(at::kFloat));
  else if (encoding.reset_residual)
    residual_.zero_();
  else if (encoding.rescale != 1)
    residual_.mul_(static_cast<double>(encoding.rescale));
}

void DeviceEncoder::encode(std::uint64_t first, std::uint64_t last, const at::Tensor& flat, const at::Tensor& out) {
  const c10::AutoGradMode graph(false);
  const std::vector<GradientEncoding::Slice> slices = unsent_.take(first, last);
  const auto end = slices.end();
  std::vector<std::pair<std::uint64_t, at::Tensor>> encoded;  // by the index of the first value
  {
    const auto guard = lanes_.on(Lane::compute);
    for (auto from = slices.begin(); from != end;) {
      // Slices of whole blocks are encoded together: many small kernels take a GPU longer than one large kernel.
      auto to = from + 1;
      while (to != end && to->bits == from->bits && (to - 1)->count % codec::block_values == 0) ++to;
      const std::uint64_t until = (to - 1)->first + (to - 1)->count;
      const at::Tensor bytes =
          codec_.encode_with_feedback(part(flat, from->first, until), part(residual_, from->first, until), from->bits, squared_norms_);
      check(bytes.numel() > 0, "a slice is not empty");
      std::int64_t at = 0;
      for (; from != to; ++from) {
        const std::int64_t size = from + 1 == to ? bytes.numel() - at : encoded_bytes(*from);
        encoded.emplace_back(from->first, bytes.narrow(0, at, size));
        at += size;
      }
    }
    made_.set(lanes_, Lane::compute);
  }
  made_.hold(lanes_, Lane::out);
  const auto guard = lanes_.on(Lane::out);
  for (const auto& [place, bytes] : encoded) {
    out.narrow(0, static_cast<std::int64_t>(place * sizeof(float)), bytes.numel()).copy_(bytes, /*non_blocking=*/true);
    in_flight_.push_back(bytes);
  }
}

double residual_ratio(const double* squared_norms) { return squared_norms[0] > 0 ? std::sqrt(squared_norms[1] / squared_norms[0]) : 0; }

}  // namespace motley::learn
