// Pictures of noise with labels that mean nothing: for measuring how fast a model is computed where nothing is to be learned.
#pragma once
#include "base/result.h"
#include "learn/data.h"
#include "learn/pictures.h"

namespace motley::learn {

/// As many as spec.samples for training and a quarter as many to judge on, of spec.picture and spec.classes (256 at most).
Result<Pictures> make_noise(const DataSpec& spec);

}  // namespace motley::learn
