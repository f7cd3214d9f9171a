#include "trace/timeline.h"

#include <algorithm>

namespace motley::trace {

void Timeline::told(const Event& e) {
  switch (e.kind) {
    case Kind::joined:
      if (open_.size() <= e.worker.value) open_.resize(e.worker.value + 1);
      open_[e.worker.value].lane.node = static_cast<std::uint32_t>(e.first);
      open_[e.worker.value].since = e.at;
      break;
    case Kind::left:
      turn(e.worker, Doing::wait, e.at);
      open_[e.worker.value].here = false;
      break;
    case Kind::released: turn(e.worker, Doing::receive, e.at); break;
    case Kind::compute_began: turn(e.worker, Doing::compute, e.at); break;
    case Kind::compute_ended: turn(e.worker, Doing::send, e.at); break;
    case Kind::contributed:
    case Kind::dropped: turn(e.worker, Doing::wait, e.at); break;
    case Kind::finished:
      for (std::uint32_t w = 0; w < open_.size(); ++w) turn(WorkerId{w}, Doing::wait, e.at);
      break;
    case Kind::ordered:
    case Kind::leased:
    case Kind::applied:
    case Kind::counted:
    case Kind::held:
    case Kind::rested:
    case Kind::evaluated:
    case Kind::fault: break;
  }
}

void Timeline::turn(WorkerId worker, Doing next, Instant now) {
  Open& open = open_[worker.value];
  if (!open.here) return;
  const Instant from = std::max(open.since, from_);
  const Instant to = std::min(now, to_);
  if (from < to) open.lane.stretches.push_back({from, to, open.doing});
  open.doing = next;
  open.since = now;
}

std::vector<Timeline::Lane> Timeline::lanes() const {
  std::vector<Lane> result;
  for (const Open& open : open_) result.push_back(open.lane);
  return result;
}

}  // namespace motley::trace
