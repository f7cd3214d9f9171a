// What this process asks of torch as a whole.
#pragma once
#include <string>

namespace motley::learn {

/// fp32 | tf32 | bf16: whether a GPU may multiply floats in tf32 where they stay floats; in all but fp32 its library tries which
/// algorithm is fastest.
void use_precision(const std::string& precision);

}  // namespace motley::learn
