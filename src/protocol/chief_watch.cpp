// What the chief does as time passes: who is silent, who lives and yet does not get on, and whose fault that is.
#include <algorithm>
#include <utility>

#include "protocol/chief.h"

namespace motley::protocol {

void Chief::tick(Instant now, ChiefActions& out) {
  for (const WorkerId worker : membership_.silent(now)) expel(now, worker, LeaveReason::silent_too_long, out);
  expel_stuck(now, out);
  if (!pending_workers_.empty() && now - *first_pending_ > options_.start_deadline) start(now, out);
  if (empty_since_ && now - *empty_since_ > options_.empty_deadline) finish(now, EndReason::nobody_left, out);
  if (options_.max_time && started_ && trained(now) >= *options_.max_time) finish(now, EndReason::time_is_up, out);
  if (finished_) return;
  strategy_.woken(now, decisions_);
  carry_out(now, out);
}

/// Whoever has had something to do for too long is taken for hung, whatever it says of itself meanwhile.
void Chief::expel_stuck(Instant now, ChiefActions& out) {
  if (!watch_.all_have_answered()) return;  // it may wait for a server
  bool unknown = false;
  for (const Overdue& late : progress_.overdue(now)) {
    const auto worker_state = worker_states_.find(late.worker);
    if (worker_state == worker_states_.end() || worker_state->second.pending_steps.empty()) continue;
    const PendingStep& order = worker_state->second.pending_steps.front();
    unknown = unknown || late.expected == Duration{0};
    expel(now, late.worker, LeaveReason::step_too_long, out, Left::Stuck{order.step, order.reported.has_value(), late.took, late.expected});
  }
  if (unknown) progress_.unknown_was_overdue();
}

/// At the end only servers are waited for: they owe the last model.
Duration Chief::longest_wait(Instant now) const {
  Duration longest = finished_ ? now - finished_at_ : progress_.longest_wait(now);
  for (const auto& [which, pending_alignment] : alignment_tests_) longest = std::max(longest, now - pending_alignment.asked);
  return longest;
}

/// After half of what a step may take: in time to know whom to blame.
void Chief::watch_servers(Instant now, ChiefActions& out) {
  if (const auto silent = watch_.silent(now)) {
    finished_ = true;
    out.emplace_back(ServerStuck{silent->server, silent->for_how_long});
    return;
  }
  if (longest_wait(now) <= options_.step_limit / 2) return;
  for (const ServerId server : watch_.ask(now)) out.emplace_back(Send{peer(server), wire::Probe{server}});
}

void Chief::driver_paused(Duration time) {
  membership_.driver_paused(time);
  progress_.driver_paused(time);
  watch_.driver_paused(time);
  for (auto& [worker, worker_state] : worker_states_) {
    worker_state.last_reported_at += time;
    worker_state.last_completed_at += time;
    for (PendingStep& order : worker_state.pending_steps) {
      order.ordered_at += time;
      order.reported_at += time;
      order.previous_reported_at += time;
    }
  }
  for (auto& [which, pending_alignment] : alignment_tests_) pending_alignment.asked += time;
  finished_at_ += time;
  if (first_pending_) *first_pending_ += time;
  if (empty_since_) *empty_since_ += time;
}

}  // namespace motley::protocol
