#include "store/local_model.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace motley::store {
namespace {

constexpr double control_variate_leak = 0.005;  // so that what was learned against somebody who has left fades
constexpr double control_variate_gain =
    0.1;  // of what a round has shown: it is noisy, and shows only two rounds later what came of the last

}  // namespace

LocalModel::LocalModel(const LocalModelOptions& options) : options_(options), optimizer_(options.optimizer, options.parameters) {
  check(options.parameters <= options.values, "parameters are among the values");
}

void LocalModel::forget() {
  begun_on_device_ = ran_on_device_ = false;
  model_.clear();
  last_delta_.clear();
  merged_.clear();
  past_rounds_.clear();
  difference_.clear();
  known_version_.reset();
  optimizer_ = Optimizer(options_.optimizer, options_.parameters);
}

/// Nesterov's method on the worker's own copy: the gradient is taken one momentum step ahead. The momentum stays with the worker from round
/// to round.
StepResult LocalModel::run_round(GradientSource& source, const LocalRound& round, IncomingUpdates& incoming, std::span<float> delta,
                                 StepIo& io) {
  check(round.values.size() == options_.values && delta.size() == options_.values, "a way is as long as the model");
  if (LocalSgd* steps = source.local_sgd(); steps != nullptr && !options_.control_variate && options_.optimizer.kind == OptimizerKind::sgd)
    return run_round_on_device(*steps, round, incoming, delta, io);
  begin(round);
  const std::size_t parameters = options_.parameters;
  const std::span<float> weights = std::span(model_).first(parameters);
  const std::span<float> start = delta;  // becomes the way at the end
  std::copy(model_.begin(), model_.end(), start.begin());
  ahead_.resize(model_.size());
  gradient_.resize(model_.size());
  NoStreaming no_streaming;
  StepResult total;
  for (std::uint32_t step = 0; step < round.steps; ++step) {
    if (step > 0) {
      for (const IncomingUpdates::Piece& piece : incoming.since(step)) merge(piece, round.correction, start);
      if (!io.wait_for(0, 0)) return total;
    }
    const std::size_t first = round.samples.size() * step / round.steps;
    const std::size_t last = round.samples.size() * (step + 1) / round.steps;
    std::copy(model_.begin(), model_.end(), ahead_.begin());
    optimizer_.look_ahead(weights, options_.momentum, round.rate, std::span<float>(ahead_).first(parameters));
    const StepResult loss = source.gradient(ahead_, round.samples.subspan(first, last - first), gradient_, no_streaming);
    if (!difference_.empty() && round.mean_steps > 1)  // while everyone takes local steps, also who takes a single one
      for (std::size_t i = 0; i < parameters; ++i) gradient_[i] += difference_[i];
    optimizer_.update(weights, std::span<const float>(gradient_).first(parameters), round.rate, options_.momentum);
    for (std::size_t i = parameters; i < model_.size(); ++i) model_[i] += gradient_[i];
    total.loss_sum += loss.loss_sum;
    total.correct += loss.correct;
    total.samples += loss.samples;
  }
  for (std::size_t i = 0; i < delta.size(); ++i) delta[i] = model_[i] - start[i];
  last_delta_.assign(delta.begin(), delta.end());
  if (options_.control_variate) {
    if (past_rounds_.size() == 2) past_rounds_.erase(past_rounds_.begin());
    past_rounds_.push_back({last_delta_, round.rate, round.steps});
  }
  return total;
}

void LocalModel::begin(const LocalRound& round) {
  update_norm_ = 0;
  if (options_.tracks_updates && round.fresh) watch(round);
  if (model_.empty()) {
    model_.assign(round.values.begin(), round.values.end());
  } else if (round.fresh) {
    each_unmerged([&](std::uint64_t first, std::uint64_t last) { adopt(round, first, last); });
  }
  if (round.fresh) merged_.clear();
}

template <class Do>
void LocalModel::each_unmerged(Do act) {
  std::sort(merged_.begin(), merged_.end());
  std::uint64_t next = 0;
  for (const auto& [first, last] : merged_) {
    if (next < first) act(next, first);
    next = last;
  }
  if (next < options_.values) act(next, options_.values);
}

/// The same walk, with the numbers on a device.
StepResult LocalModel::run_round_on_device(LocalSgd& steps, const LocalRound& round, IncomingUpdates& incoming, std::span<float> delta,
                                           StepIo& io) {
  begin_on_device(steps, round);
  steps.begin_round();
  for (std::uint32_t step = 0; step < round.steps; ++step) {
    if (step > 0) {
      for (const IncomingUpdates::Piece& piece : incoming.since(step)) {
        steps.merge(piece.first, piece.values, 1 - round.correction);
        merged_.emplace_back(piece.first, piece.first + piece.values.size());
      }
      if (!io.wait_for(0, 0)) return {};
    }
    const std::size_t first = round.samples.size() * step / round.steps;
    const std::size_t last = round.samples.size() * (step + 1) / round.steps;
    steps.step(round.samples.subspan(first, last - first), {round.rate, options_.momentum, options_.optimizer.weight_decay});
  }
  ran_on_device_ = true;
  const StepResult loss = steps.delta(delta, io.gradient_encoding());
  if (follows_) update_norm_ = steps.update_norm();
  return loss;
}

void LocalModel::begin_on_device(LocalSgd& steps, const LocalRound& round) {
  update_norm_ = 0;
  follows_ = false;
  if (!std::exchange(begun_on_device_, true))
    steps.begin(round.values);
  else if (round.fresh)
    each_unmerged([&](std::uint64_t first, std::uint64_t last) {
      const auto values = round.values.subspan(first, last - first);
      if (round.late && ran_on_device_)
        steps.put_stale(first, values, 1 - round.correction);
      else
        steps.put(first, values);
    });
  if (!round.fresh) return;
  merged_.clear();
  if (!options_.tracks_updates) return;
  steps.watch();
  follows_ = known_version_ && known_version_->next() == round.version;
  known_version_ = round.version;
}

/// Values that came too late to be merged in mid-walk.
void LocalModel::adopt(const LocalRound& round, std::uint64_t first, std::uint64_t last) {
  if (!round.late || last_delta_.empty()) {
    std::copy(round.values.begin() + static_cast<std::ptrdiff_t>(first), round.values.begin() + static_cast<std::ptrdiff_t>(last),
              model_.begin() + static_cast<std::ptrdiff_t>(first));
    return;
  }
  const std::uint64_t parameters = std::clamp(options_.parameters, first, last);
  const auto kept_fraction = static_cast<float>(1 - round.correction);
  for (std::uint64_t i = first; i < parameters; ++i) model_[i] = round.values[i] + kept_fraction * last_delta_[i];
  for (std::uint64_t i = parameters; i < last; ++i) model_[i] = round.values[i] + last_delta_[i];
  if (parameters > first) optimizer_.damp(first, parameters, 1 - round.correction);
}

void LocalModel::merge(const IncomingUpdates::Piece& piece, double correction, std::span<float> start) {
  const std::uint64_t last = piece.first + piece.values.size();
  const std::uint64_t parameters = std::clamp(options_.parameters, piece.first, last);
  const auto kept_fraction = static_cast<float>(1 - correction);
  for (std::uint64_t i = piece.first; i < last; ++i) {
    const float delta = model_[i] - start[i];
    model_[i] = piece.values[i - piece.first] + (i < parameters ? kept_fraction * delta : delta);
    start[i] = model_[i] - delta;
  }
  if (parameters > piece.first) optimizer_.damp(piece.first, parameters, 1 - correction);
  merged_.emplace_back(piece.first, last);
}

void LocalModel::watch(const LocalRound& round) {
  if (known_version_ && known_version_->next() == round.version) {
    for (std::size_t i = 0; i < options_.parameters; ++i) {
      const double change = static_cast<double>(round.values[i]) - known_[i];
      update_norm_ += change * change;
    }
    if (options_.control_variate) learn_difference(round);
  }
  known_.assign(round.values.begin(), round.values.end());
  known_version_ = round.version;
}

/// A steady way is rate*steps/(1-mu) times the mean gradient, everyone's as well as one's own. What is added to each own gradient is part
/// of the own way, so that the difference grows until both go the same way; weighted as the ways are, it sums to nothing over all workers.
void LocalModel::learn_difference(const LocalRound& round) {
  const std::size_t back = round.late ? 2 : 1;                      // the own round that went into the same update
  if (past_rounds_.size() < back || round.mean_steps <= 1) return;  // single steps of all tell nothing
  const PastRound& own = past_rounds_[past_rounds_.size() - back];
  if (own.rate <= 0) return;
  difference_.resize(options_.parameters);
  const double per_rate = control_variate_gain * (1 - options_.momentum) / own.rate;
  const auto everyone = static_cast<float>(per_rate / round.mean_steps);
  const auto alone = static_cast<float>(per_rate / own.steps);
  const auto stays = static_cast<float>(1 - control_variate_leak);
  for (std::size_t i = 0; i < options_.parameters; ++i)
    difference_[i] = stays * difference_[i] + alone * own.delta[i] - everyone * (round.values[i] - known_[i]);
}

}  // namespace motley::store
