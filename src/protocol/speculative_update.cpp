#include "protocol/speculative_update.h"

#include <algorithm>

namespace motley::protocol {

bool SpeculativeUpdate::alike(const wire::Apply& a, const wire::Apply& b) {
  return a.kind == b.kind && a.momentum == b.momentum && a.share == b.share && a.compensation == b.compensation &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const wire::Part& x, const wire::Part& y) { return x.worker == y.worker && x.weight == y.weight; });
}

bool SpeculativeUpdate::updated(const wire::Apply& update) {
  const bool repeated = last_ && alike(*last_, update);
  last_ = update;
  // A single part is complete when it arrives, so there is nothing to gain. A compensated update depends on more than its parts.
  expecting_ = repeated && update.parts.size() > 1 && update.compensation == 0 && update.kind != UpdateKind::bypass_momentum;
  if (!expecting_) return false;
  parts_ = update.parts;
  arrived_.clear();
  return true;
}

bool SpeculativeUpdate::arrived(WorkerId worker, Step step, std::size_t slice) {
  if (!expecting_) return false;
  const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const wire::Part& p) { return p.worker == worker; });
  if (found == parts_.end()) return false;
  const auto part = static_cast<std::size_t>(found - parts_.begin());
  const Step applied = last_->parts[part].step;
  if (step == applied) return false;
  if (found->step == applied) found->step = step;  // the first slice of a part tells its step
  if (arrived_.empty()) {
    arrived_.assign(parts_.size(), std::vector<bool>(slices_));
    missing_.assign(slices_, static_cast<std::uint32_t>(parts_.size()));
  }
  if (step != found->step || arrived_[part][slice]) return false;
  arrived_[part][slice] = true;
  return --missing_[slice] == 0;
}

void SpeculativeUpdate::discarded(WorkerId worker, Step step) {
  if (std::any_of(parts_.begin(), parts_.end(), [&](const wire::Part& p) { return p.worker == worker && p.step == step; }))
    expecting_ = false;
}

bool SpeculativeUpdate::matches(const wire::Apply& update) const {
  return expecting_ && update.rate == last_->next_rate && alike(*last_, update) &&
         std::equal(update.parts.begin(), update.parts.end(), parts_.begin(),
                    [](const wire::Part& x, const wire::Part& y) { return x.step == y.step; });
}

}  // namespace motley::protocol
