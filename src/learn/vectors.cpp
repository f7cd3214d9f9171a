// The teacher: features -> 32 rectified units -> classes, all weights gaussian; a sample's label is the class of the highest score.
#include "learn/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace motley::learn {

namespace {

constexpr std::uint64_t teacher_units = 32;  // enough that a linear model cannot reproduce the teacher; another number makes other data
constexpr std::uint64_t max_values = std::uint64_t{1} << 28;  // 1 GiB of floats

class Teacher {
 public:
  explicit Teacher(const DataSpec& spec) : features_(spec.features), classes_(spec.classes) {
    Rng rng(spec.seed, "synthetic teacher");
    const double first = 1 / std::sqrt(static_cast<double>(features_)), second = 1 / std::sqrt(static_cast<double>(teacher_units));
    for (std::uint64_t i = 0; i < features_ * teacher_units; ++i) to_units_.push_back(first * rng.normal());
    for (std::uint64_t i = 0; i < teacher_units * classes_; ++i) to_classes_.push_back(second * rng.normal());
  }

  [[nodiscard]] std::uint32_t label(const float* x) const {
    std::vector<double> unit(teacher_units);
    for (std::uint64_t u = 0; u < teacher_units; ++u) {
      double sum = 0;
      for (std::uint64_t f = 0; f < features_; ++f) sum += to_units_[u * features_ + f] * static_cast<double>(x[f]);
      unit[u] = std::max(sum, 0.0);
    }
    std::uint32_t best = 0;
    double best_score = 0;
    for (std::uint32_t c = 0; c < classes_; ++c) {
      double score = 0;
      for (std::uint64_t u = 0; u < teacher_units; ++u) score += to_classes_[c * teacher_units + u] * unit[u];
      if (c == 0 || score > best_score) best = c, best_score = score;
    }
    return best;
  }

 private:
  std::uint64_t features_;
  std::uint64_t classes_;
  std::vector<double> to_units_;
  std::vector<double> to_classes_;
};

LabelledVectors draw(std::uint64_t samples, std::uint64_t features, const Teacher& teacher, Rng rng) {
  LabelledVectors drawn;
  drawn.features.resize(samples * features);
  for (float& x : drawn.features) x = static_cast<float>(rng.normal());
  for (std::uint64_t s = 0; s < samples; ++s) drawn.labels.push_back(teacher.label(drawn.features.data() + s * features));
  return drawn;
}

}  // namespace

void Vectors::gather(const LabelledVectors& part, std::span<const std::uint32_t> samples, std::span<float> inputs,
                     std::span<std::int64_t> targets) const {
  check(inputs.size() == samples.size() * features && targets.size() == samples.size(), "the spans have room for the samples");
  for (std::size_t s = 0; s < samples.size(); ++s) {
    check(samples[s] < part.labels.size(), "a sample's index lies within its part of the data set");
    std::copy_n(part.features.data() + samples[s] * features, features, inputs.data() + s * features);
    targets[s] = part.labels[samples[s]];
  }
}

Result<Vectors> make_synthetic(const DataSpec& spec, EvaluateOn evaluate_on) {
  if (spec.features < 1 || spec.features > 65'536 || spec.classes < 2 || spec.classes > 65'536)
    return bad_input(fmt::format(
        "cannot make synthetic data: found features = {}, classes = {}, expected 1 to 65536 features and 2 to 65536 classes; change [data]",
        spec.features, spec.classes));
  const std::uint64_t max_samples = max_values / spec.features;
  if (spec.samples < 10 || spec.samples > max_samples)
    return bad_input(fmt::format("cannot make synthetic data: found samples = {}, expected 10 to {} (with {} features); change [data]",
                                 spec.samples, max_samples, spec.features));
  const Teacher teacher(spec);
  Vectors made{spec.features, spec.classes, draw(spec.samples, spec.features, teacher, Rng(spec.seed, "synthetic training")), {}};
  if (evaluate_on == EvaluateOn::validation)
    made.evaluation = {take_last_tenth(made.training.features, spec.features), take_last_tenth(made.training.labels)};
  else
    made.evaluation = draw(spec.samples / 4, spec.features, teacher, Rng(spec.seed, "synthetic test"));
  return made;
}

}  // namespace motley::learn
