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

/// The mean over several pieces, made while the last one's gradient is: each value is final when its part of the last piece is. A piece
/// that is the whole step lands where it belongs.
class Replica::Mean final : public Flow {
 public:
  Mean(Flow& outer, std::span<float> mean, std::span<float> piece) : outer_(outer), mean_(mean), piece_(piece) {}
  /// Where the gradient of the piece that comes now, after `before` samples, is to be written.
  std::span<float> begin(std::uint64_t before, std::uint64_t samples, bool last) {
    before_ = static_cast<float>(static_cast<double>(before) / static_cast<double>(before + samples));
    now_ = static_cast<float>(static_cast<double>(samples) / static_cast<double>(before + samples));
    last_ = last;
    whole_ = before == 0 && last;
    return whole_ ? mean_ : piece_;
  }
  [[nodiscard]] bool told() const { return told_; }
  bool need(std::uint64_t first, std::uint64_t last) override { return outer_.need(first, last); }
  void made(std::uint64_t first, std::uint64_t last) override {
    if (!whole_)
      for (std::uint64_t i = first; i < last; ++i) mean_[i] = before_ > 0 ? before_ * mean_[i] + now_ * piece_[i] : piece_[i];
    if (!last_) return;
    told_ = true;
    outer_.made(first, last);
  }

 private:
  Flow& outer_;
  std::span<float> mean_;
  std::span<float> piece_;
  float before_ = 0;
  float now_ = 1;
  bool last_ = true;
  bool whole_ = true;
  bool told_ = false;
};

void Replica::run_in_pieces(GradientSource& source, const Task& task, std::span<float> out, Flow& flow, Pace& pace, Worth& worth) {
  for (bool last = false; !last;) {
    const std::uint64_t left = task.samples.size() - worth.samples;
    Pace::Piece piece = pace.next(worth.samples, left);
    if (most_samples_ > 0 && piece.samples > most_samples_) piece = {most_samples_, false};
    last = piece.last || piece.samples == left;
    if (!(worth.samples == 0 && last)) gradient_.resize(options_.values);
    Mean mean(flow, out, gradient_);
    const std::span<float> into = mean.begin(worth.samples, piece.samples, last);
    try {
      const Loss loss = source.gradient(task.values, task.samples.subspan(worth.samples, piece.samples), into, mean);
      worth.loss.sum += loss.sum;
      worth.loss.correct += loss.correct;
      worth.loss.samples += loss.samples;
      worth.samples += piece.samples;
    } catch (const OutOfMemory&) {
      if (piece.samples == 1 || mean.told() || !options_.cuts_to_fit) throw;
      most_samples_ = worth.most_samples = static_cast<std::uint32_t>(piece.samples / 2);
      last = false;
    }
    if (!flow.need(0, 0)) return;
  }
}

Worth Replica::contribute(GradientSource& source, const Task& task, std::span<float> out, Flow& flow, Pace& pace) {
  check(task.values.size() == options_.values && out.size() == options_.values, "a contribution is as large as the model");
  Worth worth;
  if (options_.local_steps) {
    if (!flow.need(0, options_.values)) return worth;
    worth.loss = run_local_steps(source, task, out);
    worth.samples = task.samples.size();
    flow.made(0, options_.values);
  } else {
    run_in_pieces(source, task, out, flow, pace, worth);
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
