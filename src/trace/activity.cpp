#include "trace/activity.h"

namespace motley::trace {

std::span<const Activity::Ended> Activity::told(const Event& e) {
  ended_.clear();
  switch (e.kind) {
    case Kind::joined:
      if (workers_.size() <= e.worker.value) workers_.resize(e.worker.value + 1);
      workers_[e.worker.value].since = e.at;
      break;
    case Kind::left: go(e.worker, e.at); break;
    case Kind::released: turn(e.worker, Doing::receive, e.at); break;
    case Kind::compute_began: turn(e.worker, Doing::compute, e.at); break;
    case Kind::compute_ended: turn(e.worker, Doing::send, e.at); break;
    case Kind::contributed:
    case Kind::dropped: turn(e.worker, Doing::wait, e.at); break;
    case Kind::finished:
      for (std::uint32_t w = 0; w < workers_.size(); ++w) go(WorkerId{w}, e.at);
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
  return ended_;
}

void Activity::turn(WorkerId worker, Doing next, Instant now) {
  Now& lane = workers_[worker.value];
  if (!lane.here) return;
  ended_.push_back({worker, {lane.since, now, lane.doing}});
  lane.doing = next;
  lane.since = now;
}

void Activity::go(WorkerId worker, Instant now) {
  turn(worker, Doing::wait, now);
  workers_[worker.value].here = false;
}

}  // namespace motley::trace
