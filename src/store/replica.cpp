#include "store/replica.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace motley::store {
namespace {

double squared_norm(std::span<const float> values) {
  double sum = 0;
  for (const float x : values) sum += static_cast<double>(x) * x;
  return sum;
}

}  // namespace

Replica::Replica(const ReplicaOptions& options) : options_(options), optimizer_(fresh_optimizer()) {
  check(options.parameters <= options.values, "parameters are among the values");
}

std::optional<Optimizer> Replica::fresh_optimizer() const {
  if (!options_.local_steps) return std::nullopt;
  return Optimizer(options_.optimizer, options_.parameters);
}

Worth Replica::contribute(GradientSource& source, const Task& task, std::span<float> out, Flow& flow) {
  check(task.values.size() == options_.values && out.size() == options_.values, "a contribution is as large as the model");
  Worth worth;
  if (options_.local_steps) {
    if (!flow.need(0, options_.values)) return worth;
    worth.loss = run_local_steps(source, task, out);
    flow.made(0, options_.values);
  } else {
    worth.loss = source.gradient(task.values, task.samples, out, flow);
  }
  worth.squared_norm = squared_norm(out.first(options_.parameters));
  worth.finite = std::isfinite(worth.squared_norm) && std::isfinite(worth.loss.sum);
  if (!worth.finite) optimizer_ = fresh_optimizer();  // its momentum would make every later step infinite too
  return worth;
}

/// Nesterov's method on the worker's own copy: the gradient is taken one momentum step ahead. The momentum stays with the worker from round
/// to round.
Loss Replica::run_local_steps(GradientSource& source, const Task& task, std::span<float> delta) {
  const std::size_t parameters = options_.parameters;
  const std::span<float> weights = task.values.first(parameters);
  std::copy(task.values.begin(), task.values.end(), delta.begin());
  ahead_.resize(task.values.size());
  gradient_.resize(task.values.size());
  Still still;
  Loss total;
  for (std::uint32_t step = 0; step < task.local_steps; ++step) {
    const std::size_t first = task.samples.size() * step / task.local_steps;
    const std::size_t last = task.samples.size() * (step + 1) / task.local_steps;
    std::copy(task.values.begin(), task.values.end(), ahead_.begin());
    optimizer_->look_ahead(weights, options_.local_momentum, task.rate, std::span<float>(ahead_).first(parameters));
    const Loss loss = source.gradient(ahead_, task.samples.subspan(first, last - first), gradient_, still);
    optimizer_->update(weights, std::span<const float>(gradient_).first(parameters), task.rate, options_.local_momentum);
    for (std::size_t i = parameters; i < task.values.size(); ++i) task.values[i] += gradient_[i];
    total.sum += loss.sum;
    total.correct += loss.correct;
    total.samples += loss.samples;
  }
  for (std::size_t i = 0; i < delta.size(); ++i) delta[i] = task.values[i] - delta[i];
  return total;
}

}  // namespace motley::store
