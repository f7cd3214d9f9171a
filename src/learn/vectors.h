// Labelled feature vectors in memory, and the synthetic kind: a random teacher network labels gaussian inputs.
// Everything follows from the seed, through our own generator: the same bits on every machine with IEEE arithmetic and the same libm.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "learn/data.h"
#include "learn/split.h"

namespace motley::learn {

struct LabelledVectors {
  std::vector<float> features;
  std::vector<std::uint32_t> labels;
};

struct Vectors {
  std::uint64_t features{};
  std::uint64_t classes{};
  LabelledVectors training;
  LabelledVectors evaluation;

  void gather(const LabelledVectors& part, std::span<const std::uint32_t> samples, std::span<float> inputs,
              std::span<std::int64_t> targets) const;
};

/// spec.samples training samples and a quarter as many test samples.
Result<Vectors> make_synthetic(const DataSpec& spec, EvaluateOn evaluate_on);

}  // namespace motley::learn
