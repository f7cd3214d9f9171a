#include "policy/gate/gate_states.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "policy/constants.h"

namespace motley::policy {

void GateStates::joined(Instant now, std::span<const WorkerId> workers, Decisions& out) {
  for (const WorkerId worker : workers) {
    if (places_.size() <= worker.value) places_.resize(worker.value + 1, Place::outside);
    places_[worker.value] = Place::idle;
    here_.insert(worker);
    stragglers_.joined(worker);
  }
  settle(now, Why::first_order, out);
  for (const WorkerId worker : workers)
    if (places_[worker.value] == Place::idle) out.hold.push_back({worker, Why::round_in_progress, round_.size()});
}

void GateStates::left(Instant now, WorkerId worker, Decisions& out) {
  places_[worker.value] = Place::outside;
  here_.erase(worker);
  round_.erase(worker);
  stragglers_.left(worker);
  settle(now, Why::work_returned, out);
}

void GateStates::ordered(Instant now, WorkerId worker, Duration expected) { stragglers_.began(now, worker, version_, expected); }

void GateStates::idled(Instant, WorkerId worker, Decisions&) {
  places_[worker.value] = Place::idle;
  round_.erase(worker);
}

void GateStates::contributed(Instant now, const Contribution& contribution, Decisions& out) {
  const WorkerId worker = contribution.worker;
  const std::uint64_t staleness = stragglers_.staleness(worker, version_);
  ++since_look_;
  const bool caught_up = stragglers_.contributed(now, worker);
  if (caught_up) out.note.emplace_back(Straggles{worker, false, Why::caught_up, 0});
  if (round_.erase(worker) > 0) {
    places_[worker.value] = Place::idle;
    arrived_.push_back(contribution);
  } else {
    arrived_late(contribution, staleness, out);
  }
  settle(now, caught_up ? std::optional(Why::work_returned) : std::nullopt, out);
  if (places_[worker.value] == Place::idle && !round_.empty()) out.hold.push_back({worker, Why::others_computing, round_.size()});
}

void GateStates::refused(Instant now, WorkerId worker, Decisions& out) {
  stragglers_.stopped(worker);
  round_.erase(worker);
  places_[worker.value] = Place::idle;
  if (stragglers_.straggles(worker)) go_on_alone(worker, out);
  settle(now, Why::work_returned, out);
}

void GateStates::alignment_known(Instant now, const AlignmentTest& which, double alignment, Decisions& out) {
  const auto found = pending_.extract({which.worker, which.step});
  if (found.empty()) return;
  auto& [contribution, staleness] = found.mapped();
  const bool good = alignment > 0;
  if (good)
    apply({contribution}, {rules_.bypass_momentum, false, 1 / (1 + static_cast<double>(staleness))}, out);
  else
    out.drop.push_back({which.worker, which.step, Why::against_momentum});
  const bool here = places_[which.worker.value] == Place::being_tested;
  if (here) go_on_alone(which.worker, out);
  settle(now, good ? std::nullopt : std::optional(Why::work_returned), out);
}

void GateStates::woken(Instant now, Decisions& out) {
  cancel_over_stale(now, out);
  settle(now, std::nullopt, out);
}

std::optional<std::uint32_t> GateStates::cohort(WorkerId worker) const {
  return stragglers_.straggles(worker) ? std::nullopt : std::optional(0U);
}

std::uint32_t GateStates::staleness(WorkerId worker) const {
  return rules_.look_ahead_more && stragglers_.straggles(worker) ? stragglers_.medians(worker) : 0;
}

void GateStates::arrived_late(const Contribution& contribution, std::uint64_t staleness, Decisions& out) {
  const WorkerId worker = contribution.worker;
  if (staleness > rules_.over_stale_gap && rules_.test_alignment) {
    places_[worker.value] = Place::being_tested;
    pending_.emplace(std::pair{worker, contribution.step}, Pending{contribution, staleness});
    out.test_alignment.push_back({worker, contribution.step});
    return;
  }
  UpdateOptions options;
  if (staleness > 1) {
    options = {rules_.bypass_momentum, rules_.compensate, 1};
    if (rules_.soften) options.scale = 1 / (1 + state_gate::soften_per_version * static_cast<double>(staleness - 1));
  }
  apply({contribution}, options, out);
  places_[worker.value] = Place::idle;
  if (stragglers_.straggles(worker)) go_on_alone(worker, out);  // else the worker joins the next round
}

void GateStates::apply(std::vector<Contribution> members, const UpdateOptions& options, Decisions& out) {
  out.apply.push_back({std::move(members), options});
  version_ = version_.next();
}

void GateStates::release(WorkerId worker, Why why, Decisions& out) {
  const bool alone = stragglers_.straggles(worker);
  places_[worker.value] = alone ? Place::alone : Place::in_round;
  if (!alone) round_.insert(worker);
  out.release.push_back({worker, why});
}

void GateStates::go_on_alone(WorkerId worker, Decisions& out) {
  places_[worker.value] = Place::alone;
  out.release.push_back({worker, Why::on_arrival});
}

// After every event --------------------------------------------------------------------------------------------------------------------

void GateStates::settle(Instant now, std::optional<Why> reopen, Decisions& out) {
  if (look(now, out)) cancel_over_stale(now, out);
  if (!out.cancel.empty() && !reopen) reopen = Why::work_returned;
  close_and_open_rounds(now, reopen, out);
  report_state(out);
  request_wake_up(out);
}

bool GateStates::look(Instant now, Decisions& out) {
  const bool due = (look_due_ && now >= *look_due_) || since_look_ > here_.size() / state_gate::contributions_per_look;
  if (!due) return false;
  since_look_ = 0;
  for (const Straggles& found : stragglers_.look(now, version_)) {
    out.note.emplace_back(found);
    if (round_.erase(found.worker) > 0) places_[found.worker.value] = Place::alone;
  }
  look_due_ = stragglers_.next_look(now);
  if (look_due_) look_due_ = std::max(*look_due_, now + stragglers_.median() / state_gate::looks_per_step);
  return true;
}

void GateStates::cancel_over_stale(Instant now, Decisions& out) {
  if (!rules_.cancel || stragglers_.gap(version_) <= rules_.over_stale_gap || stragglers_.median() == Duration{0}) return;
  for (const WorkerId worker : stragglers_.older_than({version_.value - rules_.over_stale_gap})) {
    if (places_[worker.value] != Place::alone) continue;
    if (seconds(stragglers_.remaining(now, worker)) <= state_gate::soon * seconds(stragglers_.median())) continue;
    const Duration so_far = stragglers_.time_in_step(now, worker);
    stragglers_.stopped(worker);
    out.cancel.push_back({worker, so_far, Why::over_stale});
    go_on_alone(worker, out);
  }
}

/// Once per round, for at most one median step.
bool GateStates::waits_for_over_stale(Instant now, Decisions& out) {
  const bool over_stale = stragglers_.gap(version_) > rules_.over_stale_gap;
  if (hold_until_) {
    if (over_stale && now < *hold_until_) return true;
    hold_until_.reset();
    return false;
  }
  if (!rules_.hold || !over_stale || held_once_ || stragglers_.median() == Duration{0}) return false;
  held_once_ = true;
  hold_until_ = now + stragglers_.median();
  for (const WorkerId worker : here_)
    if (places_[worker.value] == Place::idle) out.hold.push_back({worker, Why::over_stale_ahead, stragglers_.gap(version_)});
  return true;
}

void GateStates::close_and_open_rounds(Instant now, std::optional<Why> reopen, Decisions& out) {
  if (!round_.empty()) return;
  Why why = reopen.value_or(Why::barrier_complete);
  const bool complete = !arrived_.empty();
  const bool held = hold_until_.has_value();
  if (complete) {
    std::sort(arrived_.begin(), arrived_.end(),
              [](const Contribution& a, const Contribution& b) { return std::tie(a.worker, a.step) < std::tie(b.worker, b.step); });
    apply(std::exchange(arrived_, {}), {}, out);
    cancel_over_stale(now, out);  // a worker may be over-stale with this version
    why = Why::barrier_complete;
  }
  if (!complete && !held && !reopen) return;
  if (waits_for_over_stale(now, out)) return;
  if (held && !complete) why = stragglers_.gap(version_) > rules_.over_stale_gap ? Why::waited_long_enough : Why::slowest_moved;
  held_once_ = false;
  for (const WorkerId worker : here_)
    if (places_[worker.value] == Place::idle) release(worker, why, out);
}

void GateStates::report_state(Decisions& out) {
  const std::uint64_t gap = stragglers_.gap(version_);
  State now = State::in_step;
  if (stragglers_.count() > 0 || gap > stragglers_.threshold()) now = State::lagging;
  if (gap > rules_.over_stale_gap) now = State::over_stale;
  if (now == state_ && reported_threshold_ == stragglers_.threshold()) return;
  state_ = now;
  reported_threshold_ = stragglers_.threshold();
  out.note.emplace_back(StateNow{now, gap, reported_threshold_, stragglers_.count()});
}

void GateStates::request_wake_up(Decisions& out) const {
  out.wake = look_due_;
  if (hold_until_ && (!out.wake || *hold_until_ < *out.wake)) out.wake = hold_until_;
}

void GateStates::save(StateWriter& state) const { state.count("gate.threshold", stragglers_.threshold()); }

void GateStates::restore(StateReader& state) {
  stragglers_.threshold(std::max<std::uint64_t>(state.count("gate.threshold", straggling::most_threshold), straggling::least_threshold));
}

}  // namespace motley::policy
