#include "trace/activity.h"

#include <algorithm>

namespace motley::trace {

std::span<const Activity::Ended> Activity::on_event(const Event& e) {
  ended_.clear();
  if (e.kind == Kind::finished)
    for (auto& [worker, lane] : lanes_) go(worker, lane, e.at);
  if (e.kind == Kind::joined)
    if (Now* const joining = lanes_.announce(e.worker)) *joining = {.since = e.at};
  if (Now* const lane = lanes_.find(e.worker)) on_event(e, *lane);
  return ended_;
}

void Activity::on_event(const Event& e, Now& lane) {
  switch (e.kind) {
    case Kind::left: go(e.worker, lane, e.at); break;
    case Kind::released:
      ++lane.released;
      settle(e.worker, lane, e.at);
      break;
    case Kind::compute_began:
      if (lane.cancelled == e.step) break;  // it does not know yet
      lane.computing = true;
      settle(e.worker, lane, e.at);
      break;
    case Kind::compute_ended:
      if (lane.cancelled == e.step) break;
      stalled(e.worker, lane, from_seconds(e.value), e.at);
      lane.computing = false;
      ++lane.computed;
      settle(e.worker, lane, e.at);
      break;
    case Kind::contributed:
    case Kind::dropped:
      ++lane.delivered;
      lane.computed = std::max(lane.computed, lane.delivered);
      settle(e.worker, lane, e.at);
      break;
    case Kind::cancelled:
      lane.cancelled = e.step;
      if (lane.computed > lane.delivered && !lane.computing)
        ++lane.delivered;  // what it sends is for nobody
      else
        --lane.released;
      lane.computing = false;
      settle(e.worker, lane, e.at);
      break;
    case Kind::part_began:
      lane.computing = true;
      settle(e.worker, lane, e.at);
      break;
    case Kind::part_ended:
      lane.computing = false;
      settle(e.worker, lane, e.at);
      break;
    case Kind::joined:
    case Kind::finished:
    case Kind::ordered:
    case Kind::leased:
    case Kind::applied:
    case Kind::counted:
    case Kind::held:
    case Kind::idled:
    case Kind::evaluated:
    case Kind::fault:
    case Kind::returned:
    case Kind::discarded:
    case Kind::state:
    case Kind::straggles:
    case Kind::grouped:
    case Kind::committed:
    case Kind::repartition: break;
  }
}

/// Computing hides whatever travels meanwhile; without it, what it has sent is waited for before what it will get.
void Activity::settle(WorkerId worker, Now& lane, Instant now) {
  Phase next = Phase::wait;
  if (lane.computing)
    next = Phase::compute;
  else if (lane.computed > lane.delivered)
    next = Phase::send;
  else if (lane.released > lane.computed)
    next = Phase::receive;
  if (next != lane.phase) turn(worker, lane, next, now);
}

/// Parameters came in while it computed, and it had to wait for some: told as one stretch at the beginning.
void Activity::stalled(WorkerId worker, Now& lane, Duration how_long, Instant now) {
  how_long = std::min(how_long, now - lane.since);
  if (how_long <= Duration{0} || !lane.here || lane.phase != Phase::compute) return;
  const Instant until = lane.since + how_long;
  ended_.push_back({worker, {lane.since, until, Phase::receive}});
  lane.since = until;
}

void Activity::turn(WorkerId worker, Now& lane, Phase next, Instant now) {
  if (!lane.here) return;
  ended_.push_back({worker, {lane.since, now, lane.phase}});
  lane.phase = next;
  lane.since = now;
}

void Activity::go(WorkerId worker, Now& lane, Instant now) {
  turn(worker, lane, Phase::wait, now);
  lane.here = false;
}

}  // namespace motley::trace
