#include "store/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace motley::store {
namespace {

float to_float(double x) { return static_cast<float>(x); }

struct SgdConstants {
  float rate, mu, decay;
};

void sgd(const SgdConstants& c, std::size_t n, float* __restrict w, float* __restrict v, const float* __restrict g) {
  const auto [rate, mu, decay] = c;
  for (std::size_t i = 0; i < n; ++i) {
    v[i] = mu * v[i] + (g[i] + decay * w[i]);
    w[i] -= rate * v[i];
  }
}

/// w -= reach*g + decay*w
void sgd_apart(float reach, float decay, std::size_t n, float* __restrict w, const float* __restrict g) {
  for (std::size_t i = 0; i < n; ++i) w[i] -= reach * g[i] + decay * w[i];
}

void sgd_ahead(float reach, std::size_t n, const float* w, const float* v, float* __restrict out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = w[i] - reach * v[i];
}

struct AdamConstants {
  float beta1, beta2, from_gradient1, from_gradient2, unbias1, unbias2, epsilon, decay;
};

/// `updates` >= 1: how many there have been, this one included.
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

inline float adam_direction(const AdamConstants& c, float m, float u) { return m * c.unbias1 / (std::sqrt(u * c.unbias2) + c.epsilon); }

void adamw(const AdamConstants& constants, float rate, std::size_t n, float* __restrict w, float* __restrict m, float* __restrict u,
           const float* __restrict g) {
  const AdamConstants c = constants;
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = c.beta1 * m[i] + c.from_gradient1 * g[i];
    u[i] = c.beta2 * u[i] + c.from_gradient2 * (g[i] * g[i]);
    w[i] -= rate * (adam_direction(c, m[i], u[i]) + c.decay * w[i]);
  }
}

void adam_apart(const AdamConstants& constants, float rate, float decay, std::size_t n, float* __restrict w, const float* __restrict u,
                const float* __restrict g) {
  const AdamConstants c = constants;
  for (std::size_t i = 0; i < n; ++i) w[i] -= rate * (g[i] / (std::sqrt(u[i] * c.unbias2) + c.epsilon)) + decay * w[i];
}

void adam_ahead(const AdamConstants& constants, float reach, std::size_t n, const float* w, const float* m, const float* u,
                float* __restrict out) {
  const AdamConstants c = constants;
  for (std::size_t i = 0; i < n; ++i) out[i] = w[i] - reach * adam_direction(c, m[i], u[i]);
}

}  // namespace

Optimizer::Optimizer(const OptimizerSpec& spec, std::size_t count)
    : spec_(spec), first_(count), second_(spec.kind == OptimizerKind::adamw ? count : 0) {}

void Optimizer::update(std::span<float> weights, std::span<const float> gradient, double rate, double momentum, double share) {
  check(gradient.size() == first_.size(), "a whole update covers every value");
  begin_update();
  update_piece(0, weights, gradient, rate, momentum, share);
}

void Optimizer::update_piece(std::size_t first, std::span<float> weights, std::span<const float> gradient, double rate, double momentum,
                             double share) {
  const std::size_t n = gradient.size();
  require_held(first, weights.size(), n);
  check(updates_ > 0, "begin_update comes before the first piece");
  switch (spec_.kind) {
    case OptimizerKind::sgd:
      return sgd({to_float(rate), to_float(momentum), to_float(spec_.weight_decay * share)}, n, weights.data(), first_.data() + first,
                 gradient.data());
    case OptimizerKind::adamw:
      return adamw(adam_constants(spec_, updates_), to_float(rate * share), n, weights.data(), first_.data() + first,
                   second_.data() + first, gradient.data());
  }
}

void Optimizer::update_apart_piece(std::size_t first, std::span<float> weights, std::span<const float> gradient, double rate,
                                   double momentum, double share) const {
  const std::size_t n = gradient.size();
  require_held(first, weights.size(), n);
  check(updates_ > 0, "what goes past the momentum comes after something that went into it");
  const double reach = spec_.kind == OptimizerKind::sgd ? rate / (1 - momentum) : rate;
  const float decay = to_float(reach * spec_.weight_decay * share);
  switch (spec_.kind) {
    case OptimizerKind::sgd: return sgd_apart(to_float(reach), decay, n, weights.data(), gradient.data());
    case OptimizerKind::adamw:
      return adam_apart(adam_constants(spec_, updates_), to_float(reach), decay, n, weights.data(), second_.data() + first,
                        gradient.data());
  }
}

void Optimizer::look_ahead(std::span<const float> weights, double rho, double rate, std::span<float> out, std::size_t first) const {
  const std::size_t n = out.size();
  require_held(first, weights.size(), n);
  if (updates_ == 0 || rho == 0) {
    std::copy(weights.begin(), weights.end(), out.begin());
    return;
  }
  const float reach = to_float(rho * rate);
  switch (spec_.kind) {
    case OptimizerKind::sgd: return sgd_ahead(reach, n, weights.data(), first_.data() + first, out.data());
    case OptimizerKind::adamw:
      return adam_ahead(adam_constants(spec_, updates_), reach, n, weights.data(), first_.data() + first, second_.data() + first,
                        out.data());
  }
}

void Optimizer::require_held(std::size_t first, std::size_t weights, std::size_t others) const {
  check(weights == others, "weights, gradient and outcome cover the same values");
  check(others <= first_.size() && first <= first_.size() - others, "a piece lies within the optimizer's values");
}

void Optimizer::damp(std::size_t first, std::size_t last, double factor) {
  check(first <= last && last <= first_.size(), "what is damped is held");
  const auto f = static_cast<float>(factor);
  for (std::size_t i = first; i < last; ++i) first_[i] *= f;
}

void Optimizer::restore(std::span<const float> first, std::span<const float> second, std::uint64_t updates) {
  check(first.size() == first_.size() && second.size() == second_.size(), "a state to go on from is of the same optimizer");
  std::copy(first.begin(), first.end(), first_.begin());
  std::copy(second.begin(), second.end(), second_.begin());
  updates_ = updates;
}

}  // namespace motley::store
