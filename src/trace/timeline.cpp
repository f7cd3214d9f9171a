#include "trace/timeline.h"

#include <algorithm>

namespace motley::trace {

void Timeline::on_event(const Event& event) {
  if (const auto* joined = event.as<Joined>())
    if (Lane* const joining = lanes_.announce(joined->worker)) joining->node = joined->node;
  for (const auto& [worker, stretch] : activity_.on_event(event)) {
    const Instant from = std::max(stretch.from, from_);
    const Instant to = std::min(stretch.to, to_);
    Lane* const lane = lanes_.find(worker);
    if (lane != nullptr && from < to) lane->stretches.push_back({from, to, stretch.phase});
  }
}

std::vector<Timeline::Lane> Timeline::lanes() const {
  std::vector<Lane> result;
  for (const auto& [worker, lane] : lanes_) result.push_back(lane);
  return result;
}

}  // namespace motley::trace
