// Encodes floats as bytes and decodes them. Both ends know the codec and the number of values, so the bytes carry neither.
#pragma once
#include <bit>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "codec/kernels.h"

namespace motley::codec {

static_assert(std::endian::native == std::endian::little, "encoded numbers are little-endian and copied from memory unchanged");

using Bytes = std::vector<std::byte>;

/// Law, for every codec: decode(encode(x)) has the size of x, lies within the error bound that the codec's header states, and is all
/// finite exactly when x is. Non-finite input is never undefined behaviour, but it may spread within a block: refuse it before
/// (all_finite). The same input gives the same bytes on every machine, as a whole or in consecutive pieces, of which each but the last has
/// a multiple of 256 values (block_values of format.h). One owner thread per codec, unless its header says otherwise.
class Codec {
 public:
  virtual ~Codec() = default;

  /// Exact size of `values` encoded values.
  [[nodiscard]] virtual std::size_t encoded_bytes(std::size_t values) const = 0;

  /// Fills `out`, which has encoded_bytes(values.size()) bytes.
  virtual void encode_into(std::span<const float> values, std::span<std::byte> out) const = 0;

  /// The same, appended to `out`.
  void encode(std::span<const float> values, Bytes& out) const;

  /// Fills `out`. `bytes` come from a peer: a wrong size is refused and leaves `out` unchanged; any bytes of the right size decode to some
  /// values.
  virtual Outcome decode(std::span<const std::byte> bytes, std::span<float> out) const = 0;

  /// True if each of the `values` values encoded in `bytes` (of the right size) is a number with |x| < limit. For 2, 4 and 8 bits a block
  /// passes if its scale is below half the limit. For fp32 and bf16, `bytes` are aligned as such values. At most one pass.
  [[nodiscard]] virtual bool all_below(float limit, std::span<const std::byte> bytes, std::size_t values) const = 0;

 protected:
  /// Another size than encoded_bytes(values) is our bug.
  void check_output_size(std::size_t values, std::span<std::byte> out) const;
  /// Refuses bytes of a wrong size, the only error that encoded bytes can have.
  [[nodiscard]] Outcome require_size(std::span<const std::byte> bytes, std::size_t values) const;
};

/// Codec::encoded_bytes() of the codec with `bits` bits per value.
[[nodiscard]] std::size_t encoded_bytes(int bits, std::size_t values);

/// The codec that spends `bits` per value: 32 (fp32), 16 (bf16), 8, 4 or 2 (blocks with a scale). All targets give the same bytes.
Result<std::unique_ptr<Codec>> make(int bits, Target target = best_target());

}  // namespace motley::codec
