#include "store/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace motley::store {
namespace {

float to_float(double x) { return static_cast<float>(x); }

/// `updates` >= 1: made so far, including this one.
AdamConstants adam_constants(const OptimizerSpec& spec, std::uint64_t updates) {
  const auto t = static_cast<double>(updates);
  return {.beta1 = to_float(spec.beta1),
          .beta2 = to_float(spec.beta2),
          .from_gradient1 = to_float(1 - spec.beta1),
          .from_gradient2 = to_float(1 - spec.beta2),
          .unbias1 = to_float(1 / (1 - std::pow(spec.beta1, t))),
          .unbias2 = to_float(1 / (1 - std::pow(spec.beta2, t))),
          .epsilon = to_float(spec.epsilon),
          .decay = to_float(spec.weight_decay)};
}

/// A gradient that is summed already: weight 1 leaves its bits unchanged.
Addend unweighted(std::span<const float> gradient, std::size_t weights) {
  check(gradient.size() == weights, "weights and gradient cover the same values");
  return {gradient.data(), 1.0F, nullptr};
}

}  // namespace

Optimizer::Optimizer(const OptimizerSpec& spec, std::size_t count, Target target)
    : spec_(spec), kernels_(&kernels_for(target)), first_(count), second_(spec.kind == OptimizerKind::adamw ? count : 0) {}

void Optimizer::update(std::span<float> weights, std::span<const float> gradient, double rate, double momentum, double share) {
  check(gradient.size() == first_.size(), "a whole update covers every value");
  begin_update();
  update_piece(0, weights, gradient, rate, momentum, share);
}

void Optimizer::update_piece(std::size_t first, std::span<float> weights, std::span<const float> gradient, double rate, double momentum,
                             double share) {
  const Addend whole = unweighted(gradient, weights.size());
  update_piece(first, weights, Sum{&whole, 1}, rate, momentum, share);
}

void Optimizer::update_piece(std::size_t first, std::span<float> weights, const Sum& gradient, double rate, double momentum, double share) {
  const std::size_t n = weights.size();
  require_held(first, n);
  check(updates_ > 0, "begin_update comes before the first piece");
  switch (spec_.kind) {
    case OptimizerKind::sgd:
      return kernels_->sgd(gradient, {to_float(rate), to_float(momentum), to_float(spec_.weight_decay * share)}, n, weights.data(),
                           first_.data() + first);
    case OptimizerKind::adamw:
      return kernels_->adamw(gradient, adam_constants(spec_, updates_), to_float(rate * share), n, weights.data(), first_.data() + first,
                             second_.data() + first);
  }
}

void Optimizer::update_piece_of(const Optimizer& other, std::size_t first, std::span<const float> before, std::span<float> weights,
                                const Sum& gradient, const UpdateAndLookAhead& how, std::span<float> out) {
  const std::size_t n = weights.size();
  check(before.size() == n && out.size() == n, "weights before, after and looked ahead cover the same values");
  if (spec_.kind == OptimizerKind::sgd && how.look_ahead_rate != 0 && gradient.compensation == 0) {
    require_held(first, n);
    check(updates_ > 0, "begin_update comes before the first piece");
    return kernels_->sgd_update_and_look_ahead(
        gradient, {to_float(how.rate), to_float(how.momentum), to_float(spec_.weight_decay * how.share)}, to_float(how.look_ahead_rate),
        how.non_temporal, n, before.data(), other.first_.data() + first, weights.data(), first_.data() + first, out.data());
  }
  std::copy(before.begin(), before.end(), weights.begin());
  follow(other, first, n);
  update_piece(first, weights, gradient, how.rate, how.momentum, how.share);
  look_ahead(weights, how.look_ahead_rate, 1, out, first);
}

void Optimizer::update_piece_bypassing_momentum(std::size_t first, std::span<float> weights, std::span<const float> gradient, double rate,
                                                double momentum, double share) const {
  const Addend whole = unweighted(gradient, weights.size());
  update_piece_bypassing_momentum(first, weights, Sum{&whole, 1}, rate, momentum, share);
}

void Optimizer::update_piece_bypassing_momentum(std::size_t first, std::span<float> weights, const Sum& gradient, double rate,
                                                double momentum, double share) const {
  const std::size_t n = weights.size();
  require_held(first, n);
  check(updates_ > 0, "an update that bypasses the momentum follows a normal one");
  const double look_ahead_rate = spec_.kind == OptimizerKind::sgd ? rate / (1 - momentum) : rate;
  const float decay = to_float(look_ahead_rate * spec_.weight_decay * share);
  switch (spec_.kind) {
    case OptimizerKind::sgd: return kernels_->sgd_bypass(gradient, to_float(look_ahead_rate), decay, n, weights.data());
    case OptimizerKind::adamw:
      return kernels_->adam_bypass(gradient, adam_constants(spec_, updates_), to_float(look_ahead_rate), decay, n, weights.data(),
                                   second_.data() + first);
  }
}

void Optimizer::look_ahead(std::span<const float> weights, double rho, double rate, std::span<float> out, std::size_t first) const {
  const std::size_t n = out.size();
  check(weights.size() == n, "weights and output cover the same values");
  require_held(first, n);
  if (updates_ == 0 || rho == 0) {
    std::copy(weights.begin(), weights.end(), out.begin());
    return;
  }
  const float look_ahead_rate = to_float(rho * rate);
  switch (spec_.kind) {
    case OptimizerKind::sgd: return kernels_->sgd_look_ahead(look_ahead_rate, n, weights.data(), first_.data() + first, out.data());
    case OptimizerKind::adamw:
      return kernels_->adam_look_ahead(adam_constants(spec_, updates_), look_ahead_rate, n, weights.data(), first_.data() + first,
                                       second_.data() + first, out.data());
  }
}

void Optimizer::follow(const Optimizer& other, std::size_t first, std::size_t count) {
  require_held(first, count);
  std::copy_n(other.first_.data() + first, count, first_.data() + first);
  if (!second_.empty()) std::copy_n(other.second_.data() + first, count, second_.data() + first);
}

void Optimizer::require_held(std::size_t first, std::size_t count) const {
  check(count <= first_.size() && first <= first_.size() - count, "a piece lies within the optimizer's values");
}

void Optimizer::scale_momentum(std::size_t first, std::size_t last, double factor) {
  check(first <= last && last <= first_.size(), "the range lies within the optimizer's values");
  const auto f = static_cast<float>(factor);
  for (std::size_t i = first; i < last; ++i) first_[i] *= f;
}

void Optimizer::restore(std::span<const float> first, std::span<const float> second, std::uint64_t updates) {
  check(first.size() == first_.size() && second.size() == second_.size(), "a restored state is of the same optimizer");
  std::copy(first.begin(), first.end(), first_.begin());
  std::copy(second.begin(), second.end(), second_.begin());
  updates_ = updates;
}

}  // namespace motley::store
