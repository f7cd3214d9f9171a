// Error feedback around any codec: what rounding lost now is added to what is sent next, so that nothing is lost for ever.
// After 1-bit SGD and EF-SGD. Belongs to the sender; the receiver decodes with the bare codec.
#pragma once
#include "codec/codec.h"

namespace motley::codec {

/// What one encoding wanted to send and what it kept back, squared and summed; both 0 for a vector that is not finite.
struct FeedbackNorms {
  double squared_wanted = 0;
  double squared_residual = 0;
};

/// p = x + e;  appends encode(p) to `out`;  e = p - decode(encode(p)).   A vector that holds a NaN or an infinity leaves e as it was.
/// Any target's `kernels` leave the same bits, in e and in what is told. Costs two readings of x and e, and no memory.
FeedbackNorms encode_with_feedback(const Codec& codec, std::span<const float> x, std::span<float> residual, Bytes& out,
                                   const Kernels& kernels = best_kernels());

}  // namespace motley::codec
