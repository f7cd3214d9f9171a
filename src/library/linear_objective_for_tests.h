// A small least-squares problem whose minimum is known: y = x . truth, so the loss at `truth` is 0.
#pragma once
#include <motley/objective.h>

#include <array>
#include <cmath>
#include <cstdint>

namespace motley::library {

inline constexpr std::array<float, 3> truth{1.5F, -2.0F, 0.5F};
inline constexpr std::uint64_t problem_samples = 240;

inline std::array<float, 3> input(std::uint32_t sample) {
  const double at = sample;
  return {static_cast<float>(std::sin(at)), static_cast<float>(std::cos(1.7 * at)), 1};
}

inline float residual(std::span<const float> values, std::uint32_t sample) {
  const auto x = input(sample);
  float sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * (values[i] - truth[i]);
  return sum;
}

inline Objective linear_objective() {
  Objective objective;
  objective.parameters = truth.size();
  objective.samples = problem_samples;
  objective.initialize = [](std::uint64_t, std::span<float> values) { std::fill(values.begin(), values.end(), 0.0F); };
  objective.gradient = [](std::span<const float> values, std::span<const std::uint32_t> batch, std::span<float> gradient) {
    LossSum sum;
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    for (const std::uint32_t sample : batch) {
      const float error = residual(values, sample);
      const auto x = input(sample);
      for (std::size_t i = 0; i < x.size(); ++i) gradient[i] += error * x[i] / static_cast<float>(batch.size());
      sum.loss += 0.5 * error * error;
    }
    return sum;
  };
  objective.evaluate = [](std::span<const float> values) {
    LossSum sum{.samples = problem_samples};
    for (std::uint32_t sample = 0; sample < problem_samples; ++sample) {
      const float error = residual(values, sample);
      sum.loss += 0.5 * error * error;
      sum.correct += std::abs(error) < 0.1F ? 1 : 0;
    }
    return sum;
  };
  return objective;
}

}  // namespace motley::library
