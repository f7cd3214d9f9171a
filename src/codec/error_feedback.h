// Error feedback around any codec: the rounding error of one contribution is added to the next one. After 1-bit SGD and EF-SGD.
// Only the sender needs it; the receiver decodes with the codec itself.
#pragma once
#include "codec/codec.h"

namespace motley::codec {

/// Squared norms of the vector p that was to be encoded and of the new residual; both 0 for a vector that is not finite.
struct FeedbackNorms {
  double squared_wanted = 0;
  double squared_residual = 0;
};

/// p = x + e;  appends encode(p) to `out`;  e = p - decode(encode(p)).   A vector that holds a NaN or an infinity leaves e unchanged.
/// `kernels` of every target give the same bits in e and in the result. Reads x and e twice, allocates nothing but the output.
FeedbackNorms encode_with_feedback(const Codec& codec, std::span<const float> x, std::span<float> residual, Bytes& out,
                                   const Kernels& kernels = best_kernels());

}  // namespace motley::codec
