#include "runtime/speculative_update.h"

#include <algorithm>

namespace motley::runtime {

bool SpeculativeUpdate::alike(const wire::Apply& a, const wire::Apply& b) {
  return a.kind == b.kind && a.momentum == b.momentum && a.share == b.share && a.compensation == b.compensation &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const wire::Part& x, const wire::Part& y) { return x.worker == y.worker && x.weight == y.weight; });
}

bool SpeculativeUpdate::made(const wire::Apply& update) {
  const bool again = last_ && alike(*last_, update);
  last_ = update;
  // One part is whole as soon as it is here: there is nothing to do in advance. What is compensated depends on more than is known here.
  expecting_ = again && update.parts.size() > 1 && update.compensation == 0 && update.kind != UpdateKind::bypass_momentum;
  if (!expecting_) return false;
  parts_ = update.parts;
  here_.assign(parts_.size(), std::vector<bool>(slices_));
  missing_.assign(slices_, static_cast<std::uint32_t>(parts_.size()));
  return true;
}

bool SpeculativeUpdate::arrived(WorkerId worker, Step step, SliceId slice) {
  if (!expecting_) return false;
  const auto part = std::find_if(parts_.begin(), parts_.end(), [&](const wire::Part& p) { return p.worker == worker; });
  if (part == parts_.end()) return false;
  auto& here = here_[static_cast<std::size_t>(part - parts_.begin())];
  const auto before = std::find_if(last_->parts.begin(), last_->parts.end(), [&](const wire::Part& p) { return p.worker == worker; });
  if (step == before->step) return false;             // of what was applied already, once more
  if (part->step == before->step) part->step = step;  // the first slice says which one is next
  if (step != part->step || here[slice.value]) return false;
  here[slice.value] = true;
  return --missing_[slice.value] == 0;
}

void SpeculativeUpdate::lost(WorkerId worker, Step step) {
  if (std::any_of(parts_.begin(), parts_.end(), [&](const wire::Part& p) { return p.worker == worker && p.step == step; }))
    expecting_ = false;
}

bool SpeculativeUpdate::right(const wire::Apply& update) const {
  return expecting_ && update.rate == last_->next_rate && alike(*last_, update) &&
         std::equal(update.parts.begin(), update.parts.end(), parts_.begin(),
                    [](const wire::Part& x, const wire::Part& y) { return x.step == y.step; });
}

}  // namespace motley::runtime
