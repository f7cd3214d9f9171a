#include "codec/error_feedback.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.h"
#include "codec/format.h"

namespace motley::codec {
namespace {

/// The three vectors of one piece (24 KiB) fit the L1 cache, and the piece needs no allocation.
constexpr std::size_t piece_values = 8 * block_values;
using Piece = std::array<float, piece_values>;

template <class Each>
void for_pieces(std::size_t n, Each each) {
  for (std::size_t begin = 0; begin < n; begin += piece_values) each(begin, std::min(piece_values, n - begin));
}

}  // namespace

FeedbackNorms encode_with_feedback(const Codec& codec, std::span<const float> x, std::span<float> residual, Bytes& out,
                                   const Kernels& kernels) {
  const std::size_t n = x.size();
  check(residual.size() == n, "the residual is as long as the vector");
  const std::size_t start = out.size();
  out.resize(start + codec.encoded_bytes(n));
  std::span<std::byte> free = std::span(out).subspan(start);
  Piece wanted;  // p; NOLINT(cppcoreguidelines-pro-type-member-init): filled below, and this is hot
  Piece sent;    // q; NOLINT(cppcoreguidelines-pro-type-member-init): likewise

  const auto want = [&](std::size_t begin, std::size_t length) {
    kernels.add(x.data() + begin, residual.data() + begin, length, wanted.data());
    return std::span<const float>(wanted).first(length);
  };
  std::int32_t largest = 0;
  for_pieces(n, [&](std::size_t begin, std::size_t length) {
    largest = std::max(largest, kernels.largest_magnitude_bits(want(begin, length).data(), length));
  });
  const bool finite = largest < infinity_bits;

  SquareSums sums;
  for_pieces(n, [&](std::size_t begin, std::size_t length) {
    const std::span<const float> piece = want(begin, length);
    const std::span<std::byte> bytes = free.first(codec.encoded_bytes(length));
    free = free.subspan(bytes.size());
    codec.encode_into(piece, bytes);
    if (!finite) return;
    const bool decoded = codec.decode(bytes, std::span(sent).first(length)).ok();
    check(decoded, "a codec decodes what it encoded");
    kernels.keep_residual(piece.data(), sent.data(), length, residual.data() + begin, sums);
  });
  const auto sum = [](const auto& sixteen) { return std::accumulate(std::begin(sixteen), std::end(sixteen), 0.0); };
  return {sum(sums.wanted), sum(sums.residual)};
}

}  // namespace motley::codec
