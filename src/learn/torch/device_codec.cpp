#include "learn/torch/device_codec.h"

#include "base/bits.h"
#include "codec/format.h"

namespace motley::learn {

namespace {

constexpr int byte_bits = 8;
constexpr auto block = static_cast<std::int64_t>(codec::block_values);
constexpr auto scale_bytes = static_cast<std::int64_t>(codec::scale_bytes);

int levels_of(int bits) { return (1 << (bits - 1)) - 1; }
/// Bytes of the codes of one block.
std::int64_t stride(std::int64_t values, int bits) { return (values * bits + byte_bits - 1) / byte_bits; }

at::Tensor magnitudes(const at::Tensor& values) { return values.view(at::kInt).bitwise_and(codec::magnitude_mask); }

at::Tensor as_float(const at::Tensor& upper_half) { return upper_half.bitwise_left_shift(bf16_bits).view(at::kFloat); }

/// Rows of values to rows of bytes.
at::Tensor encode_blocks(const at::Tensor& rows, int bits) {
  const std::int64_t per_byte = byte_bits / bits;
  const std::int64_t bytes = stride(rows.size(1), bits);
  const int levels = levels_of(bits);
  const at::Tensor largest = magnitudes(rows).amax(1).clamp_max(codec::infinity_bits);
  const at::Tensor poisoned = largest.ge(codec::infinity_bits);
  const at::Tensor scale = largest.add(0xffff).bitwise_right_shift(bf16_bits).clamp_max(codec::largest_bf16);
  const at::Tensor wide = as_float(scale);
  const at::Tensor divisor = wide.masked_fill(wide.eq(0), 1).unsqueeze(1);
  at::Tensor codes = at::round(rows.div(divisor).mul(levels)).masked_fill(poisoned.unsqueeze(1), -levels).add(levels).to(at::kInt);
  codes = at::constant_pad_nd(codes, {0, per_byte * bytes - rows.size(1)}, 0).view({rows.size(0), per_byte, bytes});
  at::Tensor packed = codes.select(1, 0);
  for (std::int64_t k = 1; k < per_byte; ++k) packed = packed.bitwise_or(codes.select(1, k).bitwise_left_shift(k * bits));
  const at::Tensor reported = scale.masked_fill(poisoned, codec::poisoned);
  const at::Tensor head = at::stack({reported.bitwise_and(0xff), reported.bitwise_right_shift(byte_bits)}, 1);
  return at::cat({head, packed}, 1).to(at::kByte);
}

at::Tensor encode_as_bf16(const at::Tensor& values) {
  const at::Tensor raw = values.view(at::kInt);
  const at::Tensor magnitude = raw.bitwise_and(codec::magnitude_mask);
  const at::Tensor upper = magnitude.bitwise_right_shift(bf16_bits);
  const at::Tensor infinite = magnitude.ge(codec::infinity_bits);
  const at::Tensor nearest = magnitude.masked_fill(infinite, 0).add(upper.bitwise_and(1)).add(0x7fff).bitwise_right_shift(bf16_bits);
  const at::Tensor finite = nearest.clamp_max(codec::largest_bf16);
  const at::Tensor not_a_number = at::where(magnitude.gt(codec::infinity_bits), upper.bitwise_or(codec::quiet_nan_bit), upper);
  const at::Tensor sign = raw.bitwise_right_shift(bf16_bits).bitwise_and(0x8000);
  return at::where(infinite, not_a_number, finite).bitwise_or(sign).to(at::kShort).view(at::kByte);
}

}  // namespace

DeviceCodec::DeviceCodec(at::Device device) {
  for (const int bits : {2, 4, 8}) {
    const int levels = levels_of(bits);
    at::Tensor table = at::empty({std::int64_t{1} << bits}, at::kFloat);
    for (int code = 0; code < 1 << bits; ++code)
      table.data_ptr<float>()[code] = static_cast<float>(code - levels) / static_cast<float>(levels);
    levels_[bits] = table.to(device);
  }
}

at::Tensor DeviceCodec::encode(const at::Tensor& values, int bits) const {
  const at::Tensor flat = values.contiguous();
  if (bits == fp32_bits) return flat.view(at::kByte);
  if (bits == bf16_bits) return encode_as_bf16(flat);
  const std::int64_t whole = flat.numel() / block * block;
  std::vector<at::Tensor> bytes;
  if (whole > 0) bytes.push_back(encode_blocks(flat.narrow(0, 0, whole).view({-1, block}), bits).flatten());
  if (whole < flat.numel()) bytes.push_back(encode_blocks(flat.narrow(0, whole, flat.numel() - whole).unsqueeze(0), bits).flatten());
  return bytes.size() == 1 ? bytes.front() : at::cat(bytes);
}

at::Tensor DeviceCodec::decode_blocks(const at::Tensor& bytes, int bits, std::int64_t count) const {
  const at::Tensor head = bytes.narrow(1, 0, scale_bytes).to(at::kInt);
  const at::Tensor scale = as_float(head.select(1, 0).bitwise_or(head.select(1, 1).bitwise_left_shift(byte_bits)));
  const at::Tensor packed = bytes.narrow(1, scale_bytes, stride(count, bits)).to(at::kInt);
  std::vector<at::Tensor> codes;
  for (int k = 0; k < byte_bits / bits; ++k) codes.push_back(packed.bitwise_right_shift(k * bits).bitwise_and((1 << bits) - 1));
  const at::Tensor all = at::cat(codes, 1).narrow(1, 0, count);
  return levels_.at(bits).index_select(0, all.reshape({-1})).view(all.sizes()).mul(scale.unsqueeze(1));
}

at::Tensor DeviceCodec::decode(const at::Tensor& bytes, int bits, std::int64_t count) const {
  if (bits == fp32_bits) return bytes.view(at::kFloat);
  if (bits == bf16_bits) return as_float(bytes.view(at::kShort).to(at::kInt));
  const std::int64_t whole = count / block;
  const std::int64_t row = scale_bytes + stride(block, bits);
  std::vector<at::Tensor> values;
  if (whole > 0) values.push_back(decode_blocks(bytes.narrow(0, 0, whole * row).view({whole, row}), bits, block).flatten());
  const std::int64_t rest = count - whole * block;
  if (rest > 0) {
    const at::Tensor tail = bytes.narrow(0, whole * row, bytes.numel() - whole * row).unsqueeze(0);
    values.push_back(decode_blocks(tail, bits, rest).flatten());
  }
  return values.size() == 1 ? values.front() : at::cat(values);
}

at::Tensor DeviceCodec::encode_with_feedback(const at::Tensor& values, at::Tensor residual, int bits, at::Tensor squared_norms) const {
  const at::Tensor wanted = values.add(residual);
  at::Tensor bytes = encode(wanted, bits);
  const at::Tensor lost = wanted - decode(bytes, bits, values.numel());
  const at::Tensor finite = magnitudes(wanted).max().lt(codec::infinity_bits);
  residual.copy_(at::where(finite, lost, residual));
  const at::Tensor squares = at::stack({wanted.to(at::kDouble).square().sum(), lost.to(at::kDouble).square().sum()});
  squared_norms.add_(at::where(finite, squares, at::zeros_like(squares)));
  return bytes;
}

}  // namespace motley::learn
