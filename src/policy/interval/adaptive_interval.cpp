#include "policy/interval/adaptive_interval.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "policy/constants.h"

namespace motley::policy {
namespace {

void move(double& mean, double value, double keep) { mean = mean == 0 ? value : keep * mean + (1 - keep) * value; }

}  // namespace

std::uint32_t IntervalAdaptive::steps() const {
  const double base = fixed_ ? *fixed_ : std::min(std::max(base_, hide_), intervals::most_steps);
  return static_cast<std::uint32_t>(std::max(1.0, std::round(std::min(base, cap_))));
}

double IntervalAdaptive::most() const {
  if (first_loss_ <= 0 || rate_ <= 0) return intervals::nominal;
  return std::clamp(intervals::nominal * std::sqrt(std::max(loss_, 0.0) / first_loss_) * first_rate_ / rate_, 1.0, intervals::most_steps);
}

double IntervalAdaptive::cap(const RoundStats& made) {
  if (made.progress < intervals::first_part) return intervals::growth * made.progress / made.batch;
  return ((made.granted < intervals::last_part ? intervals::last_part : 1) - made.granted) / made.batch;
}

void IntervalAdaptive::updated(const RoundStats& made) {
  sequential_ = made.progress < intervals::first_part || made.granted >= intervals::last_part;
  if (made.batch > 0) cap_ = cap(made);
  move(loss_, made.loss, intervals::forgetting);
  move(slow_loss_, made.loss, intervals::slow_forgetting);
  rate_ = made.rate;
  if (made.step_s > 0) hide_ = std::ceil(made.transfer_s / made.step_s);
  if (sequential_ || made.progress < intervals::settled) return;
  if (first_loss_ == 0) first_loss_ = loss_;
  if (first_rate_ == 0) first_rate_ = rate_;
  spreads_.push_back({made.version, made.spread});
  if (spreads_.size() > intervals::spreads_kept) spreads_.pop_front();
}

/// Every worker reports each update; the first report counts.
void IntervalAdaptive::seen(Version version, double update_norm) {
  const auto found = std::find_if(spreads_.begin(), spreads_.end(), [&](const Spread& made) { return made.version == version; });
  if (found == spreads_.end() || update_norm <= 0) return;
  const double agreement = found->spread / update_norm;
  spreads_.erase(spreads_.begin(), found + 1);
  update_interval(agreement);
}

void IntervalAdaptive::update_interval(double agreement) {
  const bool disagrees = agreement_ > 0 && agreement > intervals::jump * agreement_;
  move(agreement_, agreement, intervals::forgetting);
  ++rounds_since_change_;
  if (disagrees) {
    base_ = std::max(1.0, base_ / 2);
    rounds_since_change_ = 0;
  } else if (rounds_since_change_ >= intervals::rounds_to_grow && loss_ <= slow_loss_) {
    base_ = base_ < most() ? std::min(base_ + 1, most()) : std::max(base_ - 1, most());
    rounds_since_change_ = 0;
  }
}

void IntervalAdaptive::save(StateWriter& state) const {
  state.number("interval.base_steps", base_);
  state.number("interval.hiding_steps", hide_);
  state.number("interval.agreement", agreement_);
  state.number("interval.first_loss", first_loss_);
  state.number("interval.loss", loss_);
  state.number("interval.slow_loss", slow_loss_);
  state.number("interval.first_rate", first_rate_);
  state.number("interval.rate", rate_);
  state.number("interval.cap", cap_);
  state.count("interval.sequential", sequential_ ? 1 : 0);
}

void IntervalAdaptive::restore(StateReader& state) {
  constexpr double any = std::numeric_limits<double>::max();  // a worker's loss need not be an entropy: it may be negative
  base_ = state.number("interval.base_steps", 1, intervals::most_steps);
  hide_ = state.number("interval.hiding_steps");
  agreement_ = state.number("interval.agreement");
  first_loss_ = state.number("interval.first_loss", -any);
  loss_ = state.number("interval.loss", -any);
  slow_loss_ = state.number("interval.slow_loss", -any);
  first_rate_ = state.number("interval.first_rate");
  rate_ = state.number("interval.rate");
  cap_ = state.number("interval.cap");
  sequential_ = state.count("interval.sequential", 1) != 0;
}

}  // namespace motley::policy
