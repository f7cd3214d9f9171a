#include "policy/strategy.h"

#include <vector>

#include "policy/schedule.h"

namespace motley::policy {

void Strategy::joined(Instant now, std::span<const Newcomer> newcomers, Decisions& out) {
  std::vector<WorkerId> workers;
  workers.reserve(newcomers.size());
  for (const Newcomer& newcomer : newcomers) {
    workers.push_back(newcomer.worker);
    monitor_.joined(newcomer.worker);
  }
  m_.load->joined(newcomers);
  m_.gate->joined(now, workers, out);
}

void Strategy::left(Instant now, WorkerId worker, Decisions& out) {
  m_.load->left(worker);
  m_.gate->left(now, worker, out);
}

void Strategy::contributed(Instant now, const Contribution& contribution, Decisions& out) {
  const std::uint32_t steps = contribution.local_steps;
  monitor_.observe(contribution.worker, contribution.samples / steps, contribution.compute / steps);
  m_.gate->contributed(now, contribution, out);
}

Plan Strategy::plan(WorkerId worker) const {
  const std::uint32_t steps = m_.interval.steps(worker);
  return {m_.load->batch(worker) * steps, steps, m_.precision.bits(worker)};
}

double Strategy::rho() const { return payload() == Payload::gradient ? look_ahead(m_.momentum, m_.lookahead_terms) : 0.0; }

std::vector<double> Strategy::save() const {
  std::vector<double> state;
  m_.rule->save(state);
  return state;
}

}  // namespace motley::policy
