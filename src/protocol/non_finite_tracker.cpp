#include "protocol/non_finite_tracker.h"

#include <algorithm>

namespace motley::protocol {

void NonFiniteTracker::on_finite(WorkerId worker, Version base) {
  in_a_row_ = 0;
  workers_[worker].in_a_row = 0;
  workers_[worker].finite_base = base;
}

NonFiniteTracker::Verdict NonFiniteTracker::on_non_finite(WorkerId worker, Version base, const StepTable& steps) {
  Worker& it = workers_[worker];
  if (it.in_a_row == 0) it.first_base = base;
  ++in_a_row_;
  if (++it.in_a_row >= most_of_one_ && others_are_finite(worker, steps)) return Verdict::broken_worker;
  if (in_a_row_ >= most_in_a_row_ && !others_will_tell(worker, steps)) return Verdict::diverged;
  return Verdict::undecided;
}

bool NonFiniteTracker::others_are_finite(WorkerId worker, const StepTable& steps) const {
  const Version since = workers_.at(worker).first_base;
  int finite = 0;
  for (const auto& [id, other] : workers_) {
    if (id == worker) continue;
    if (other.in_a_row > 0)
      --finite;
    else if (other.finite_base && (steps.oldest(id) == nullptr || *other.finite_base >= since))
      ++finite;
  }
  return finite > 0;
}

bool NonFiniteTracker::others_will_tell(WorkerId worker, const StepTable& steps) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& other) {
    return other.first != worker && other.second.in_a_row == 0 && steps.oldest(other.first) != nullptr;
  });
}

}  // namespace motley::protocol
