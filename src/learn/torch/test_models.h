// For tests: a small example of every model, and steps with it. Torch-free.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <ostream>
#include <string>

#include "learn/learner.h"
#include "learn/test_files.h"
#include "learn/test_samples.h"

namespace motley::learn {

using Values = std::vector<float>;

/// A small model of each kind, with data that suits it.
struct Example {
  std::string name;
  ModelSpec spec;
  float rate{};  // a learning rate at which it learns a few samples
  [[nodiscard]] std::shared_ptr<const DataSet> data() const {
    return spec.kind == "transformer" ? small_text() : small_pictures(64, 150, spec.kind == "resnet18" ? 16 : 8);
  }
  [[nodiscard]] std::unique_ptr<Learner> learner() const {
    use_threads(1);
    auto made = make_learner(spec, data());
    return std::move(made.value());
  }
};

inline void PrintTo(const Example& model, std::ostream* out) { *out << model.name; }

inline const Example models[] = {{"Mlp", {.kind = "mlp", .hidden = {12, 7}}, 0.1F},
                                 {"MlpWithoutHiddenLayers", {.kind = "mlp", .hidden = {}}, 0.05F},
                                 {"Cnn", {.kind = "cnn", .hidden = {}, .width = 3}, 0.05F},
                                 {"Resnet20", {.kind = "resnet20", .hidden = {}, .width = 2}, 0.05F},
                                 {"Vgg11", {.kind = "vgg11", .hidden = {}, .width = 2}, 0.05F},
                                 {"Transformer", {.kind = "transformer", .hidden = {}, .width = 8, .depth = 2, .heads = 2}, 0.5F},
                                 {"Resnet18", {.kind = "resnet18", .hidden = {}, .width = 2}, 0.05F}};

/// The results of one call of gradient().
struct Step {
  StepResult result;
  Values gradient;
};

inline Step step(Learner& learner, const Values& values, const std::vector<std::uint32_t>& samples) {
  Step taken{{}, Values(values.size())};
  taken.result = learner.gradient(values, samples, taken.gradient);
  return taken;
}

inline Values initial(Learner& learner, std::uint64_t seed = 1) {
  Values values(learner.shape().values());
  learner.initialize(seed, values);
  return values;
}

inline double mean_loss(const StepResult& result) { return result.loss_sum / static_cast<double>(result.samples); }

inline double norm(std::span<const float> x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

inline void expect_close(const Values& actual, const Values& expected, double relative) {
  Values difference(actual.size());
  for (std::size_t i = 0; i < actual.size(); ++i) difference[i] = actual[i] - expected[i];
  EXPECT_LE(norm(difference), relative * norm(expected));
}

inline const Tensor& tensor_named(const Learner& learner, const std::string& name) {
  for (const Tensor& tensor : learner.shape().tensors)
    if (tensor.name == name) return tensor;
  throw Bug("no tensor " + name);
}

}  // namespace motley::learn
