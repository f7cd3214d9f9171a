// Logistic regression on a mixed cluster: the program computes the gradient, Motley does the rest.
//
//   linear linear.toml                         a chief and four workers in this process
//   linear linear.toml --strategy bsp          with another strategy
//   linear linear.toml --listen HOST:7000 --token-file token        a chief with one worker, to which others join:
//   linear --join HOST:7000 --token-file token --node middle        on another machine
#include <motley/motley.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t features = 20;
constexpr std::size_t training_samples = 8000;
constexpr std::size_t test_samples = 2000;
constexpr double target = 0.97;

struct Sample {
  std::vector<float> x;
  bool label = false;
};

/// The same samples in every process: points on both sides of a hyperplane.
std::vector<Sample> make_samples() {
  std::mt19937 random(1);
  const auto draw = [&] { return static_cast<float>(random()) / 2147483648.0F - 1; };  // [-1, 1]
  std::vector<float> normal(features);
  for (float& value : normal) value = draw();
  std::vector<Sample> samples(training_samples + test_samples);
  for (Sample& sample : samples) {
    float side = 0;
    for (std::size_t i = 0; i < features; ++i) {
      sample.x.push_back(draw());
      side += normal[i] * sample.x[i];
    }
    sample.label = side > 0;
  }
  return samples;
}

/// The score of a sample; the last parameter is the bias.
float score(std::span<const float> values, const Sample& sample) {
  float sum = values[features];
  for (std::size_t i = 0; i < features; ++i) sum += values[i] * sample.x[i];
  return sum;
}

/// Adds a sample's loss to `sum`; returns the derivative of the loss by the score.
float add_loss(float score, bool label, motley::LossSum& sum) {
  const float signed_score = label ? score : -score;
  sum.loss += std::log1p(std::exp(-signed_score));
  sum.correct += signed_score > 0 ? 1 : 0;
  ++sum.samples;
  return (label ? -1.0F : 1.0F) / (1.0F + std::exp(signed_score));
}

motley::Objective logistic_regression(const std::vector<Sample>& samples) {
  motley::Objective objective;
  objective.parameters = features + 1;
  objective.samples = training_samples;
  objective.initialize = [](std::uint64_t, std::span<float> values) {
    for (float& value : values) value = 0;
  };
  objective.gradient = [&](std::span<const float> values, std::span<const std::uint32_t> batch, std::span<float> gradient) {
    motley::LossSum sum;
    for (float& value : gradient) value = 0;
    for (const std::uint32_t index : batch) {
      const Sample& sample = samples[index];
      const float slope = add_loss(score(values, sample), sample.label, sum) / static_cast<float>(batch.size());
      for (std::size_t i = 0; i < features; ++i) gradient[i] += slope * sample.x[i];
      gradient[features] += slope;
    }
    return sum;
  };
  objective.evaluate = [&](std::span<const float> values) {
    motley::LossSum sum;
    for (std::size_t i = training_samples; i < samples.size(); ++i) add_loss(score(values, samples[i]), samples[i].label, sum);
    return sum;
  };
  return objective;
}

int run(int argc, char** argv) {
  const motley::Session session = motley::join(argc, argv);
  motley::Job job;
  std::string strategy;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--strategy" && i + 1 < argc)
      strategy = argv[++i];
    else
      job = motley::read_job(argument);
  }
  job.strategy = strategy;
  const std::vector<Sample> samples = make_samples();
  const motley::Trained trained = motley::train(session, job, [&] { return logistic_regression(samples); });
  if (!session.join.empty()) return 0;  // the chief has the model
  const double accuracy = trained.evaluations.empty() ? 0 : trained.evaluations.back().accuracy;
  std::printf("%s: %.1f %% after %.1f s, %llu updates\n", strategy.empty() ? "trained" : strategy.c_str(), 100 * accuracy, trained.seconds,
              static_cast<unsigned long long>(trained.updates));
  return accuracy >= target ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const motley::Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return failure.kind() == motley::Failure::Kind::bad_input ? 2 : 3;
  }
}
