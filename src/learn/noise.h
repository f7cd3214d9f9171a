// Pictures of noise with random labels, for measuring the speed of a model. Nothing can be learned from them.
#pragma once
#include "base/result.h"
#include "learn/data.h"
#include "learn/pictures.h"

namespace motley::learn {

/// spec.samples pictures for training, a quarter as many (at most noise_evaluation_samples) for evaluation, of size spec.picture, with
/// spec.classes (at most 256) classes.
Result<Pictures> make_noise(const DataSpec& spec);

}  // namespace motley::learn
