#include "store/local_model.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/constants.h"

namespace motley::store {
LocalModel::LocalModel(const LocalModelOptions& options) : options_(options), optimizer_(options.optimizer, options.parameters) {
  check(options.parameters <= options.values, "parameters are among the values");
}

void LocalModel::forget() {
  begun_on_device_ = ran_on_device_ = false;
  model_.clear();
  last_delta_.clear();
  merged_.clear();
  past_rounds_.clear();
  control_variate_.clear();
  last_global_version_.reset();
  optimizer_ = Optimizer(options_.optimizer, options_.parameters);
}

/// Nesterov's method on the worker's own copy: the gradient is taken one momentum step ahead. The momentum stays with the worker from round
/// to round.
StepResult LocalModel::run_round(GradientSource& source, const LocalRound& round, IncomingUpdates& incoming, std::span<float> delta,
                                 StepIo& io) {
  check(round.values.size() == options_.values && delta.size() == options_.values, "a delta covers the whole flat buffer");
  if (LocalSgd* steps = source.local_sgd(); steps != nullptr && !options_.control_variate && options_.optimizer.kind == OptimizerKind::sgd)
    return run_round_on_device(*steps, round, incoming, delta, io);
  begin(round);
  const std::size_t parameters = options_.parameters;
  const std::span<float> weights = std::span(model_).first(parameters);
  const std::span<float> start = delta;  // holds the start of the round until the delta is computed
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
    if (!control_variate_.empty() && round.mean_steps > 1)  // while workers take local steps, even if this one takes a single one
      for (std::size_t i = 0; i < parameters; ++i) gradient_[i] += control_variate_[i];
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
  if (options_.tracks_updates && round.fresh) track_update(round);
  if (model_.empty()) {
    model_.assign(round.values.begin(), round.values.end());
  } else if (round.fresh) {
    each_unmerged([&](std::uint64_t first, std::uint64_t last) { start_from(round, first, last); });
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

/// The same local steps, with the values on a device.
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
  if (consecutive_) update_norm_ = steps.update_norm();
  return loss;
}

void LocalModel::begin_on_device(LocalSgd& steps, const LocalRound& round) {
  update_norm_ = 0;
  consecutive_ = false;
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
  consecutive_ = last_global_version_ && last_global_version_->next() == round.version;
  last_global_version_ = round.version;
}

/// Begins the round at global values that were not merged during the last one.
void LocalModel::start_from(const LocalRound& round, std::uint64_t first, std::uint64_t last) {
  if (!round.late || last_delta_.empty()) {
    std::copy(round.values.begin() + static_cast<std::ptrdiff_t>(first), round.values.begin() + static_cast<std::ptrdiff_t>(last),
              model_.begin() + static_cast<std::ptrdiff_t>(first));
    return;
  }
  const std::uint64_t parameters = std::clamp(options_.parameters, first, last);
  const auto kept_fraction = static_cast<float>(1 - round.correction);
  for (std::uint64_t i = first; i < parameters; ++i) model_[i] = round.values[i] + kept_fraction * last_delta_[i];
  for (std::uint64_t i = parameters; i < last; ++i) model_[i] = round.values[i] + last_delta_[i];
  if (parameters > first) optimizer_.scale_momentum(first, parameters, 1 - round.correction);
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
  if (parameters > piece.first) optimizer_.scale_momentum(piece.first, parameters, 1 - correction);
  merged_.emplace_back(piece.first, last);
}

void LocalModel::track_update(const LocalRound& round) {
  if (last_global_version_ && last_global_version_->next() == round.version) {
    for (std::size_t i = 0; i < options_.parameters; ++i) {
      const double change = static_cast<double>(round.values[i]) - last_global_[i];
      update_norm_ += change * change;
    }
    if (options_.control_variate) update_control_variate(round);
  }
  last_global_.assign(round.values.begin(), round.values.end());
  last_global_version_ = round.version;
}

/// In steady state a delta is rate*steps/(1-mu) times the mean gradient, of this worker or of all. The correction is part of this worker's
/// own delta, so it grows until both agree; weighted like the deltas, the corrections of all workers sum to 0.
void LocalModel::update_control_variate(const LocalRound& round) {
  const std::size_t back = round.late ? 2 : 1;                      // this worker's round that is part of the same update
  if (past_rounds_.size() < back || round.mean_steps <= 1) return;  // if all workers take single steps there is no drift to correct
  const PastRound& own = past_rounds_[past_rounds_.size() - back];
  if (own.rate <= 0) return;
  control_variate_.resize(options_.parameters);
  const double per_rate = control_variate_gain * (1 - options_.momentum) / own.rate;
  const auto everyone = static_cast<float>(per_rate / round.mean_steps);
  const auto alone = static_cast<float>(per_rate / own.steps);
  const auto stays = static_cast<float>(1 - control_variate_decay);
  for (std::size_t i = 0; i < options_.parameters; ++i)
    control_variate_[i] = stays * control_variate_[i] + alone * own.delta[i] - everyone * (round.values[i] - last_global_[i]);
}

}  // namespace motley::store
