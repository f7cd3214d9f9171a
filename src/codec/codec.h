// How floats become bytes on the wire, and back. A codec knows nothing of slices, workers or who reads the bytes.
// Both ends know the codec and the number of values, so the bytes carry neither.
#pragma once
#include <bit>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "codec/kernels.h"

namespace motley::codec {

static_assert(std::endian::native == std::endian::little, "encoded numbers are little-endian and copied as they lie in memory");

using Bytes = std::vector<std::byte>;

/// Law, for every codec: decode(encode(x)) has the size of x, lies within the error bound that the codec's header states, and is all
/// finite exactly when x is. Non-finite input is never undefined behaviour, but it may spread within a block: refuse it before
/// (all_finite). The same input gives the same bytes on every machine, and so do its pieces one after the other, where each but the last
/// is a multiple of 256 values (block_values of format.h). One owner thread per codec, unless it says otherwise.
class Codec {
 public:
  virtual ~Codec() = default;

  /// Exact size of `values` encoded values.
  [[nodiscard]] virtual std::size_t encoded_bytes(std::size_t values) const = 0;

  /// Fills `out`, which has encoded_bytes(values.size()) bytes.
  virtual void encode_into(std::span<const float> values, std::span<std::byte> out) const = 0;

  /// The same, appended to `out`.
  void encode(std::span<const float> values, Bytes& out) const;

  /// Fills `out`. `bytes` come from a peer: a wrong size is refused and leaves `out` alone; of the right size, any bytes are some values.
  virtual Outcome decode(std::span<const std::byte> bytes, std::span<float> out) const = 0;

  /// Whether each of the `values` values of these bytes, which have the right size, is a number and |x| < limit. In few bits a block is
  /// judged by its scale, and refused from half the limit on. fp32, bf16: the bytes begin where such a number may. One pass at most.
  [[nodiscard]] virtual bool all_below(float limit, std::span<const std::byte> bytes, std::size_t values) const = 0;

 protected:
  /// Room of another size than encoded_bytes(values) is our bug.
  void check_output_size(std::size_t values, std::span<std::byte> out) const;
  /// The one thing that can be wrong with encoded bytes.
  [[nodiscard]] Outcome require_size(std::span<const std::byte> bytes, std::size_t values) const;
};

/// Of so many values with so many bits each: what a codec says of itself.
[[nodiscard]] std::size_t encoded_bytes(int bits, std::size_t values);

/// The codec that spends `bits` per value: 32 (fp32), 16 (bf16), 8, 4 or 2 (blocks with a scale). All targets leave the same bits.
Result<std::unique_ptr<Codec>> make(int bits, Target target = best_target());

}  // namespace motley::codec
