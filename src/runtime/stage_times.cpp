#include "runtime/stage_times.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace motley::runtime {

void StageTimes::begin(Instant now, std::size_t stages, std::uint64_t allowed) {
  recorded_until_.assign(stages, now);
  allowed_ = {{allowed, now}};
}

void StageTimes::allow(Instant now, std::uint64_t allowed, std::uint64_t done) {
  allowed_.emplace(allowed, now);  // said again: nothing new
  const auto last = std::prev(allowed_.end());
  for (auto it = allowed_.begin(); it != last && it->first <= done;) it = allowed_.erase(it);
}

Instant StageTimes::allowed_at(std::uint64_t mini) const {
  const auto found = allowed_.upper_bound(mini);
  return found != allowed_.end() ? found->second : allowed_.rbegin()->second;
}

Instant StageTimes::believe(Instant now, std::uint32_t stage, std::uint32_t micro_batches, std::vector<wire::PartRecord>& parts) {
  check(stage < recorded_until_.size() && micro_batches > 0, "a stage of this layout");
  Instant& until = recorded_until_[stage];
  if (parts.empty()) return until = now;
  Duration shift = std::max(Duration{0}, until - Instant{parts.front().began});
  Instant last = until;
  for (const wire::PartRecord& did : parts) {
    shift = std::max(shift, allowed_at(did.micro / micro_batches) - Instant{did.began});
    last = std::max(last, Instant{did.ended});
  }
  if (shift == Duration{0} && last > now) shift = now - last;
  for (wire::PartRecord& did : parts) {
    const Instant began = std::clamp(Instant{did.began + shift}, std::max(until, allowed_at(did.micro / micro_batches)), now);
    until = std::clamp(Instant{did.ended + shift}, began, now);
    did.began = began.time_since_epoch();
    did.ended = until.time_since_epoch();
  }
  return until;
}

Instant StageTimes::recorded_until() const {
  check(!recorded_until_.empty(), "stages are assigned");
  return *std::min_element(recorded_until_.begin(), recorded_until_.end());
}

}  // namespace motley::runtime
