#include "trace/timeline.h"

#include <algorithm>

namespace motley::trace {

void Timeline::told(const Event& e) {
  if (e.kind == Kind::joined) {
    if (lanes_.size() <= e.worker.value) lanes_.resize(e.worker.value + 1);
    lanes_[e.worker.value].node = static_cast<std::uint32_t>(e.first);
  }
  for (const auto& [worker, stretch] : activity_.told(e)) {
    const Instant from = std::max(stretch.from, from_);
    const Instant to = std::min(stretch.to, to_);
    if (from < to) lanes_[worker.value].stretches.push_back({from, to, stretch.doing});
  }
}

}  // namespace motley::trace
