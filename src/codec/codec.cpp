#include "codec/codec.h"

#include <fmt/format.h>

#include "base/check.h"
#include "codec/bf16.h"
#include "codec/bits.h"
#include "codec/fp32.h"

namespace motley::codec {

void Codec::encode(std::span<const float> values, Bytes& out) const {
  const std::size_t start = out.size();
  out.resize(start + encoded_bytes(values.size()));
  encode_into(values, std::span(out).subspan(start));
}

void Codec::check_output_size(std::size_t values, std::span<std::byte> out) const {
  check(out.size() == encoded_bytes(values), "the output has exactly the encoded size");
}

Outcome Codec::require_size(std::span<const std::byte> bytes, std::size_t values) const {
  const std::size_t expected = encoded_bytes(values);
  if (bytes.size() == expected) return Done{};
  return peer_broken(fmt::format("decoding {} values: found {} bytes, expected {}; both ends must use one codec and one layout", values,
                                 bytes.size(), expected));
}

Result<std::unique_ptr<Codec>> make(int bits, Target target) {
  switch (bits) {
    case 32: return std::unique_ptr<Codec>(std::make_unique<Fp32>());
    case 16: return std::unique_ptr<Codec>(std::make_unique<Bf16>(kernels_of(target)));
    case 8:
    case 4:
    case 2: return std::unique_ptr<Codec>(std::make_unique<Bits>(bits, kernels_of(target)));
    default: return bad_input(fmt::format("no codec has {} bits per value; choose 32, 16, 8, 4 or 2", bits));
  }
}

std::size_t encoded_bytes(int bits, std::size_t values) { return make(bits).value()->encoded_bytes(values); }

}  // namespace motley::codec
