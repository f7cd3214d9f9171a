#include "sim/real_numbers.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/rng.h"

namespace motley::sim {
namespace {

double squared_norm(std::span<const float> values) {
  double sum = 0;
  for (const float x : values) sum += static_cast<double>(x) * x;
  return sum;
}

}  // namespace

RealNumbers::RealNumbers(RealNumbersOptions options, GradientSource& source) : options_(std::move(options)), source_(source) {
  std::vector<float> initial(options_.layout.values);
  source_.initialize(options_.seed, initial);
  for (std::uint32_t s = 0; s < options_.layout.servers; ++s)
    servers_.emplace_back(options_.layout, ServerId{s}, options_.optimizer, initial);
}

RealNumbers::Replica& RealNumbers::replica(WorkerId worker) {
  Replica& held = replicas_[worker];
  if (held.values.empty()) {
    held.values.resize(options_.layout.values);
    held.optimizer = local_optimizer();
  }
  return held;
}

std::unique_ptr<store::Optimizer> RealNumbers::local_optimizer() const {
  return options_.local_steps ? std::make_unique<store::Optimizer>(options_.optimizer, options_.parameters) : nullptr;
}

void RealNumbers::snapshot(ServerId server, WorkerId worker, double rho) {
  if (const auto found = replicas_.find(worker); found != replicas_.end() && found->second.forgotten) return;
  servers_[server.value].snapshot(rho, replica(worker).values);
}

Contributed RealNumbers::compute(const wire::Order& order) {
  Replica& held = replicas_[order.worker];
  if (held.forgotten) return {};
  gather_samples(order.lease);
  Payload payload{take_buffer(), 0, false};
  const Loss loss =
      options_.local_steps ? run_local_steps(held, order, payload.values) : source_.gradient(held.values, samples_, payload.values);
  const double norm = squared_norm(std::span<const float>(payload.values).first(options_.parameters));
  const bool finite = std::isfinite(norm) && std::isfinite(loss.sum);
  if (!finite) held.optimizer = local_optimizer();  // its momentum would make every later step infinite too
  payloads_.insert_or_assign({order.worker, order.step}, std::move(payload));
  return {loss.sum, norm, finite};
}

/// Nesterov's method on the worker's own copy: the gradient is taken one momentum step ahead. The momentum stays with the worker from round
/// to round.
Loss RealNumbers::run_local_steps(Replica& held, const wire::Order& order, std::span<float> delta) {
  const std::size_t parameters = options_.parameters;
  std::copy(held.values.begin(), held.values.end(), delta.begin());
  ahead_.resize(options_.layout.values);
  gradient_.resize(options_.layout.values);
  Loss total;
  for (std::uint32_t step = 0; step < order.local_steps; ++step) {
    const std::size_t first = samples_.size() * step / order.local_steps;
    const std::size_t last = samples_.size() * (step + 1) / order.local_steps;
    std::copy(held.values.begin(), held.values.end(), ahead_.begin());
    const std::span<float> weights(held.values.data(), parameters);
    held.optimizer->look_ahead(weights, options_.local_momentum, order.rate, std::span<float>(ahead_).first(parameters));
    const Loss loss = source_.gradient(ahead_, std::span<const std::uint32_t>(samples_).subspan(first, last - first), gradient_);
    held.optimizer->update(weights, std::span<const float>(gradient_).first(parameters), order.rate, options_.local_momentum);
    for (std::size_t i = parameters; i < held.values.size(); ++i) held.values[i] += gradient_[i];
    total.sum += loss.sum;
    total.correct += loss.correct;
    total.samples += loss.samples;
  }
  for (std::size_t i = 0; i < held.values.size(); ++i) delta[i] = held.values[i] - delta[i];
  return total;
}

void RealNumbers::commit(ServerId server, const wire::Apply& update) {
  std::vector<store::WeightedPart> parts;
  parts.reserve(update.parts.size());
  for (const wire::Part& part : update.parts) {
    const auto found = payloads_.find({part.worker, part.step});
    check(found != payloads_.end(), "what is committed has a payload");
    parts.push_back({found->second.values, part.weight});
  }
  const bool gradient = update.kind == wire::UpdateKind::gradient;
  servers_[server.value].apply({gradient ? store::UpdateKind::gradient : store::UpdateKind::delta, update.rate, update.momentum, update.share}, parts);
  for (const wire::Part& part : update.parts)
    if (++payloads_.at({part.worker, part.step}).commits == options_.layout.servers) free(part.worker, part.step);
}

void RealNumbers::free(WorkerId worker, Step step) {
  const auto found = payloads_.find({worker, step});
  if (found == payloads_.end()) return;
  spare_.push_back(std::move(found->second.values));
  payloads_.erase(found);
}

void RealNumbers::completed(WorkerId worker, Step step) { payloads_.at({worker, step}).complete = true; }

void RealNumbers::forget(WorkerId worker) {
  Replica& held = replicas_[worker];
  held.forgotten = true;
  held.values = {};
  held.optimizer.reset();
  for (auto it = payloads_.lower_bound({worker, Step{}}); it != payloads_.end() && it->first.first == worker;)
    it = it->second.complete ? std::next(it) : payloads_.erase(it);
}

std::optional<Evaluation> RealNumbers::exported(ServerId server, Version version) {
  Export& collected = exports_[version];
  collected.values.resize(options_.layout.values);
  servers_[server.value].values(collected.values);
  if (++collected.servers < options_.layout.servers) return std::nullopt;
  const Loss loss = source_.evaluate(collected.values);
  exports_.erase(version);
  const double samples = static_cast<double>(std::max<std::uint64_t>(loss.samples, 1));
  return Evaluation{static_cast<double>(loss.correct) / samples, loss.sum / samples};
}

void RealNumbers::values(std::span<float> out) const {
  for (const store::ShardStore& server : servers_) server.values(out);
}

std::vector<float> RealNumbers::take_buffer() {
  if (spare_.empty()) return std::vector<float>(options_.layout.values);
  std::vector<float> buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

void RealNumbers::gather_samples(const Lease& lease) {
  samples_.clear();
  for (const Range& range : lease.ranges) {
    const std::vector<std::uint32_t>& order = permutation_of(range.epoch);
    for (std::uint64_t p = range.first; p < range.last; ++p) samples_.push_back(order[p]);
  }
}

const std::vector<std::uint32_t>& RealNumbers::permutation_of(std::uint32_t epoch) {
  auto& order = permutations_[epoch];
  if (order.empty()) order = permutation(static_cast<std::uint32_t>(options_.epoch_samples), Rng(options_.seed, "epoch", epoch));
  return order;
}

}  // namespace motley::sim
