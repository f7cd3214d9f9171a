#include "policy/worker_set.h"

#include <algorithm>

#include "base/check.h"

namespace motley::policy {

void WorkerSet::join(WorkerId worker) {
  check(!present(worker), "a worker joins once");
  if (states_.size() <= worker.value) states_.resize(worker.value + 1, State::outside);
  states_[worker.value] = State::idle;
  workers_.insert(std::upper_bound(workers_.begin(), workers_.end(), worker), worker);
}

bool WorkerSet::leave(WorkerId worker) {
  const bool was_busy = busy(worker);
  check(present(worker), "only a present worker can leave");
  states_[worker.value] = State::outside;
  workers_.erase(std::lower_bound(workers_.begin(), workers_.end(), worker));
  if (was_busy) --busy_count_;
  return was_busy;
}

void WorkerSet::set_busy(WorkerId worker, bool now_busy) {
  check(present(worker), "only a present worker can be busy");
  if (busy(worker) == now_busy) return;
  states_[worker.value] = now_busy ? State::busy : State::idle;
  now_busy ? ++busy_count_ : --busy_count_;
}

bool WorkerSet::present(WorkerId worker) const { return worker.value < states_.size() && states_[worker.value] != State::outside; }
bool WorkerSet::busy(WorkerId worker) const { return worker.value < states_.size() && states_[worker.value] == State::busy; }

std::size_t WorkerSet::rank(WorkerId worker) const {
  check(present(worker), "only a present worker has a rank");
  return static_cast<std::size_t>(std::lower_bound(workers_.begin(), workers_.end(), worker) - workers_.begin());
}

}  // namespace motley::policy
