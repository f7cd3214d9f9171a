#include "policy/strategy.h"

#include <algorithm>
#include <vector>

#include "policy/schedule.h"

namespace motley::policy {

void Strategy::joined(Instant now, std::span<const Newcomer> newcomers, Decisions& out) {
  std::vector<WorkerId> workers;
  workers.reserve(newcomers.size());
  for (const Newcomer& newcomer : newcomers) {
    workers.push_back(newcomer.worker);
    monitor_.joined(newcomer.worker);
    m_.travel->joined(newcomer.worker);
  }
  m_.load->joined(newcomers);
  m_.gate->joined(now, workers, out);
}

void Strategy::left(Instant now, WorkerId worker, Decisions& out) {
  m_.load->left(worker);
  m_.travel->left(worker);
  m_.gate->left(now, worker, out);
}

void Strategy::contributed(Instant now, const Contribution& contribution, Decisions& out) {
  monitor_.observe(contribution);
  m_.travel->contributed(contribution);
  if (contribution.most_samples > 0) m_.load->restricted(contribution.worker, contribution.most_samples);
  m_.gate->contributed(now, contribution, out);
}

void Strategy::updated(double progress) {
  ++updates_;
  m_.load->updated(monitor_, [this](WorkerId worker) { return exposed_s(worker); });
  m_.travel->updated(monitor_, {progress, m_.load->step_s(), updates_});
  m_.gate->overlap(m_.travel->delay());
}

double Strategy::exposed_s(WorkerId worker) const {
  const Bits bits = m_.travel->bits(worker);
  const double on_the_way = monitor_.push_s(worker, bits.push) + monitor_.pull_s(worker, bits.pull);
  return m_.travel->delay() == 0 ? on_the_way : std::max(0.0, on_the_way - m_.load->step_s());
}

Plan Strategy::plan(WorkerId worker) const {
  const std::uint32_t steps = m_.interval.steps(worker);
  return {m_.load->batch(worker) * steps, steps, m_.travel->bits(worker), m_.load->box(worker)};
}

double Strategy::rho() const {
  if (payload() != Payload::gradient || m_.lookahead_terms == 0) return 0;
  return look_ahead(m_.momentum, m_.lookahead_terms + m_.travel->delay());
}

std::uint32_t Strategy::pull_class(WorkerId worker) const {
  constexpr std::uint32_t beyond_bits = 64;
  return m_.gate->in_step() ? m_.travel->bits(worker).pull : beyond_bits + worker.value;
}

std::vector<double> Strategy::save() const {
  std::vector<double> state;
  m_.rule->save(state);
  m_.travel->save(state);
  state.push_back(static_cast<double>(updates_));
  return state;
}

void Strategy::restore(std::span<const double> state) {
  m_.rule->restore(state);
  m_.travel->restore(state);
  if (!state.empty()) updates_ = static_cast<std::uint64_t>(state.front());
}

}  // namespace motley::policy
