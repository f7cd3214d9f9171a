#include "trace/activity.h"

#include <algorithm>

namespace motley::trace {

std::span<const Activity::Ended> Activity::told(const Event& e) {
  ended_.clear();
  switch (e.kind) {
    case Kind::joined:
      if (workers_.size() <= e.worker.value) workers_.resize(e.worker.value + 1);
      workers_[e.worker.value].since = e.at;
      break;
    case Kind::left: go(e.worker, e.at); break;
    case Kind::released:
      ++workers_[e.worker.value].released;
      settle(e.worker, e.at);
      break;
    case Kind::compute_began:
      if (workers_[e.worker.value].cancelled == e.step) break;  // it does not know yet
      workers_[e.worker.value].computing = true;
      settle(e.worker, e.at);
      break;
    case Kind::compute_ended:
      if (workers_[e.worker.value].cancelled == e.step) break;
      stood(e.worker, from_seconds(e.value), e.at);
      workers_[e.worker.value].computing = false;
      ++workers_[e.worker.value].computed;
      settle(e.worker, e.at);
      break;
    case Kind::contributed:
    case Kind::dropped: {
      Now& now = workers_[e.worker.value];
      ++now.delivered;
      now.computed = std::max(now.computed, now.delivered);
      settle(e.worker, e.at);
      break;
    }
    case Kind::cancelled: {
      Now& now = workers_[e.worker.value];
      now.cancelled = e.step;
      if (now.computed > now.delivered && !now.computing)
        ++now.delivered;  // what it sends is for nobody
      else
        --now.released;
      now.computing = false;
      settle(e.worker, e.at);
      break;
    }
    case Kind::part_began:
      workers_[e.worker.value].computing = true;
      settle(e.worker, e.at);
      break;
    case Kind::part_ended:
      workers_[e.worker.value].computing = false;
      settle(e.worker, e.at);
      break;
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
    case Kind::fault:
    case Kind::returned:
    case Kind::discarded:
    case Kind::state:
    case Kind::straggles:
    case Kind::grouped:
    case Kind::committed:
    case Kind::recut: break;
  }
  return ended_;
}

/// Computing hides whatever travels meanwhile; without it, what it has sent is waited for before what it will get.
void Activity::settle(WorkerId worker, Instant now) {
  const Now& lane = workers_[worker.value];
  Doing next = Doing::wait;
  if (lane.computing)
    next = Doing::compute;
  else if (lane.computed > lane.delivered)
    next = Doing::send;
  else if (lane.released > lane.computed)
    next = Doing::receive;
  if (next != lane.doing) turn(worker, next, now);
}

/// Parameters came in while it computed, and it had to wait for some: told as one stretch at the beginning.
void Activity::stood(WorkerId worker, Duration how_long, Instant now) {
  Now& lane = workers_[worker.value];
  if (how_long <= Duration{0} || !lane.here || lane.doing != Doing::compute) return;
  const Instant until = std::min(now, lane.since + how_long);
  ended_.push_back({worker, {lane.since, until, Doing::receive}});
  lane.since = until;
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
