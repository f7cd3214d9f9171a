#include "protocol/chief.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/bits.h"
#include "base/check.h"
#include "base/match.h"

namespace motley::protocol {

Chief::Chief(const ChiefOptions& options, policy::Strategy strategy, const policy::LrSchedule& schedule)
    : options_(options),
      strategy_(std::move(strategy)),
      schedule_(schedule),
      admission_({options.quorum, options.start_deadline, options.empty_deadline}),
      membership_(options.silence_deadline),
      ledger_(options.epoch_samples, options.total_samples, options.shards),
      steps_(options.servers),
      alignment_tests_(options.servers),
      non_finite_(options.refusals_of_one, options.refusals_in_a_row),
      progress_(options.step_limit),
      watch_(options.servers, options.step_limit),
      snapshots_(options.evaluate_every, options.checkpoint_every) {
  check(options.servers >= 1 && options.evaluate_every >= 1, "there is a server, and evaluate_every is positive");
}

Outcome Chief::resume(const ChiefState& state) {
  check(!clock_.started(), "a chief resumes before training starts");
  if (const Outcome good = check_state(state, ledger_.total(), options_.evaluate_every); !good) return good.error();
  if (const Outcome good = strategy_.restore(state.strategy); !good) return bad_input("strategy." + good.error().message);
  if (!ledger_.restore(state.counted))
    return bad_input(
        fmt::format("counted: found ranges that overlap, are empty or end beyond sample {}, expected disjoint ones", ledger_.total()));
  version_ = state.version;
  snapshots_.restore(state);
  membership_.go_on_from(state.next_worker);
  clock_.continue_from(state.trained);
  return Done{};
}

void Chief::step(Instant now, const ChiefEvent& event, ChiefActions& out) {
  std::visit(
      match{[&](const Received& e) { receive(now, e, out); },
            [&](const Lost& e) {
              if (!finished_ && membership_.contains(e.worker)) expel(now, e.worker, LeaveReason::connection_lost, out);
            },
            [&](const LostPending& e) { admission_.disconnected(now, e.connection); },
            [&](const Tick&) {
              if (!finished_) tick(now, out);
              watch_servers(now, out);
            },
            [&](const Interrupted&) { finish(now, EndReason::interrupted, out); }, [&](const DriverPaused& e) { driver_paused(e.time); },
            [&](const ModelNotFinite&) { finish(now, EndReason::diverged, out); }},
      event);
}

// Messages -----------------------------------------------------------------------------------------------------------------------------

void Chief::receive(Instant now, const Received& received, ChiefActions& out) {
  if (const auto* hi = std::get_if<wire::Hello>(&received.message)) return hello(now, received, *hi, out);
  if (const auto* gathered = std::get_if<wire::Gathered>(&received.message)) {
    if (received.from != peer(gathered->server) || finished_) return;
    if (const PendingStep* step = steps_.on_gathered(*gathered)) complete(now, gathered->worker, *step, out);
    return;
  }
  if (const auto* result = std::get_if<wire::AlignmentResult>(&received.message)) {
    if (received.from == peer(result->server) && !finished_) alignment_known(now, *result, out);
    return;
  }
  if (const auto* answer = std::get_if<wire::Probe>(&received.message)) {
    if (received.from == peer(answer->server)) watch_.answered(answer->server);
    return;
  }
  // All other messages come from a worker and concern this worker alone.
  if (received.from.role != Role::worker) return;
  const WorkerId worker{received.from.id};
  if (!membership_.record_contact(now, worker)) {
    out.emplace_back(Send{received.from, finished_ ? wire::Message{wire::Stop{}} : wire::Message{wire::Fenced{worker}}});
    return;
  }
  if (finished_) return;  // it was sent Stop
  if (const auto* reported = std::get_if<wire::Contributed>(&received.message); reported != nullptr && reported->worker == worker)
    if (const PendingStep* step = steps_.on_contributed(now, *reported)) complete(now, worker, *step, out);
  if (std::holds_alternative<wire::Leaving>(received.message)) expel(now, worker, LeaveReason::said_goodbye, out);
}

void Chief::alignment_known(Instant now, const wire::AlignmentResult& reported, ChiefActions& out) {
  const std::optional<double> alignment = alignment_tests_.on_result(reported);
  if (!alignment) return;
  strategy_.alignment_known(now, {reported.worker, reported.step}, *alignment, decisions_);
  carry_out(now, out);
}

// Members ------------------------------------------------------------------------------------------------------------------------------

void Chief::hello(Instant now, const Received& received, const wire::Hello& hello, ChiefActions& out) {
  if (received.from.role != Role::pending) return;
  if (finished_) {
    out.emplace_back(Send{received.from, wire::Stop{}});
    return;
  }
  const std::uint32_t connection = received.from.id;
  if (!clock_.started()) {
    admission_.wait(now, connection, hello);
    if (admission_.has_quorum()) start(now, out);
    return;
  }
  if (const auto before = admission_.admitted_on(connection); before && membership_.contains(*before))
    expel(now, *before, LeaveReason::connection_lost, out);
  const policy::WorkerProfile profile = welcome(now, connection, hello, out);
  strategy_.joined(now, {&profile, 1}, decisions_);
  carry_out(now, out);
}

policy::WorkerProfile Chief::welcome(Instant now, std::uint32_t connection, const wire::Hello& hello, ChiefActions& out) {
  const WorkerId worker = membership_.join(now, hello.node);
  admission_.admitted(connection, worker);
  non_finite_.join(worker);
  orders_.join(worker, hello.node_index == wire::no_node_index ? worker.value : hello.node_index, hello.profile.bytes_per_value == 2);
  out.emplace_back(Send{pending_worker(connection), wire::Welcome{worker, hello.attempt}});
  out.emplace_back(Joined{worker, hello.node});
  return {.worker = worker, .device = cluster::plausible(hello.profile)};
}

void Chief::start(Instant now, ChiefActions& out) {
  clock_.start(now);
  std::vector<policy::WorkerProfile> profiles;
  for (const auto& [connection, hello] : admission_.take_all()) profiles.push_back(welcome(now, connection, hello, out));
  strategy_.joined(now, profiles, decisions_);
  carry_out(now, out);
}

void Chief::expel(Instant now, WorkerId worker, LeaveReason why, ChiefActions& out, const std::optional<Left::Stuck>& stuck) {
  check(membership_.contains(worker), "only a member can be expelled");
  tell_servers(wire::Forget{worker}, out);  // first: servers would keep a slice that arrived between Discard and Forget
  for (const PendingStep& step : steps_.leave(worker)) give_back(worker, step.step, step.lease, out);
  orders_.leave(worker);
  non_finite_.leave(worker);
  progress_.left(worker);
  membership_.leave(worker);
  if (membership_.size() == 0) admission_.last_member_left(now);
  if (why == LeaveReason::silent_too_long || why == LeaveReason::step_too_long) out.emplace_back(Send{peer(worker), wire::Fenced{worker}});
  if (why == LeaveReason::never_finite || why == LeaveReason::sent_not_finite) out.emplace_back(Send{peer(worker), wire::Stop{}});
  out.emplace_back(Left{worker, why, stuck});
  strategy_.left(now, worker, decisions_);
  carry_out(now, out);
}

// Time ---------------------------------------------------------------------------------------------------------------------------------

void Chief::tick(Instant now, ChiefActions& out) {
  for (const WorkerId worker : membership_.silent(now)) expel(now, worker, LeaveReason::silent_too_long, out);
  expel_stuck(now, out);
  if (admission_.start_overdue(now)) start(now, out);
  if (admission_.empty_for_too_long(now)) finish(now, EndReason::nobody_left, out);
  if (options_.max_time && clock_.started() && clock_.trained(now) >= *options_.max_time) finish(now, EndReason::time_is_up, out);
  if (finished_) return;
  strategy_.woken(now, decisions_);
  carry_out(now, out);
}

/// Expels workers whose step takes too long, unless they may be waiting for a server.
void Chief::expel_stuck(Instant now, ChiefActions& out) {
  if (!watch_.all_have_answered()) return;
  bool unknown = false;
  for (const Overdue& late : progress_.overdue(now)) {
    const PendingStep* step = steps_.oldest(late.worker);
    if (step == nullptr) continue;
    unknown = unknown || late.expected == Duration{0};
    expel(now, late.worker, LeaveReason::step_too_long, out, Left::Stuck{step->step, step->reported.has_value(), late.took, late.expected});
  }
  if (unknown) progress_.unknown_was_overdue();
}

/// Sends Probe after half of what a step may take: the answers are here before a worker would be expelled.
void Chief::watch_servers(Instant now, ChiefActions& out) {
  if (const auto silent = watch_.silent(now)) {
    finished_ = true;
    out.emplace_back(ServerStuck{silent->server, silent->for_how_long});
    return;
  }
  const Duration waited = finished_ ? now - finished_at_ : progress_.longest_wait(now);  // after the end servers still owe the last model
  if (std::max(waited, alignment_tests_.longest_wait(now)) <= options_.step_limit / 2) return;
  for (const ServerId server : watch_.ask(now)) out.emplace_back(Send{peer(server), wire::Probe{server}});
}

void Chief::driver_paused(Duration time) {
  admission_.driver_paused(time);
  membership_.driver_paused(time);
  steps_.driver_paused(time);
  alignment_tests_.driver_paused(time);
  progress_.driver_paused(time);
  watch_.driver_paused(time);
  finished_at_ += time;
}

// Contributions: reported and gathered -> complete -> with the strategy -> applied or dropped ------------------------------------------

void Chief::complete(Instant now, WorkerId worker, const PendingStep& step, ChiefActions& out) {
  const StepReport& reported = step.reported->report;
  const bool finite = reported.finite && std::isfinite(reported.squared_norm) && std::isfinite(reported.loss_sum);
  if (!finite || reported.squared_norm < 0) return refuse(now, worker, step.step, out);
  if (!step.finite) {
    out.emplace_back(Dropped{worker, step.step, policy::Why::not_finite});
    return expel(now, worker, LeaveReason::sent_not_finite, out);
  }
  const policy::Contribution contribution = steps_.contribution(now, worker, step);
  PendingStep ended = end_step(now, worker, step.step);
  const Lease rest = ended.lease.cut(contribution.report.samples);
  steps_.add_complete(worker, ended.step, {std::move(ended.lease), ended.parameters});
  non_finite_.on_finite(worker, ended.version);
  out.emplace_back(Completed{.worker = worker,
                             .step = contribution.step,
                             .base = contribution.base,
                             .samples = contribution.report.samples,
                             .loss = contribution.report.mean_loss(),
                             .pull = contribution.report.pull});
  if (!rest.empty()) {
    ledger_.give_back(rest);
    out.emplace_back(Returned{worker, contribution.step, rest});
  }
  strategy_.contributed(now, contribution, decisions_);
  carry_out(now, out);
}

/// Removes a step that has ended; the time of the worker's next step begins.
PendingStep Chief::end_step(Instant now, WorkerId worker, Step step) {
  PendingStep ended = steps_.remove(now, worker, step);
  const PendingStep* next = steps_.oldest(worker);
  progress_.done(now, worker, next == nullptr ? 0 : next->lease.size());
  return ended;
}

void Chief::refuse(Instant now, WorkerId worker, Step step, ChiefActions& out) {
  const PendingStep refused = end_step(now, worker, step);
  give_back(worker, step, refused.lease, out);
  out.emplace_back(Dropped{worker, step, policy::Why::not_finite});
  switch (non_finite_.on_non_finite(worker, refused.version, steps_)) {
    case NonFiniteTracker::Verdict::broken_worker: return expel(now, worker, LeaveReason::never_finite, out);
    case NonFiniteTracker::Verdict::diverged: return finish(now, EndReason::diverged, out);
    case NonFiniteTracker::Verdict::undecided: strategy_.refused(now, worker, decisions_); carry_out(now, out);
  }
}

/// The step is not used: its samples may be leased again, and servers free its slices.
void Chief::give_back(WorkerId worker, Step step, const Lease& lease, ChiefActions& out) {
  ledger_.give_back(lease);
  tell_servers(wire::Discard{worker, step}, out);
}

// Decisions of the strategy ------------------------------------------------------------------------------------------------------------

void Chief::carry_out(Instant now, ChiefActions& out) {
  for (const policy::Apply& update : decisions_.apply) apply(now, update, out);
  for (const policy::AlignmentTest& which : decisions_.test_alignment) {
    alignment_tests_.begin(now, which.worker, which.step);
    tell_servers(wire::AlignmentTest{which.worker, which.step}, out);
  }
  for (const policy::Drop& which : decisions_.drop) {
    give_back(which.worker, which.step, steps_.take_complete(which.worker, which.step).lease, out);
    out.emplace_back(Discarded{which.worker, which.step, which.why});
  }
  for (const policy::Cancel& which : decisions_.cancel) cancel(now, which, out);
  // By index: a worker that idles may release others, which appends to the list.
  for (std::size_t next = 0; next < decisions_.release.size();) order_next(now, decisions_.release[next++], out);
  for (const policy::Hold& hold : decisions_.hold) out.emplace_back(Held{hold.worker, hold.why, hold.gap});
  for (const policy::Note& note : decisions_.note) out.emplace_back(Noted{note});
  if (decisions_.wake) out.emplace_back(WakeAt{*decisions_.wake});
  decisions_.clear();
  if (ledger_.complete()) finish(now, EndReason::every_sample_counted, out);
}

void Chief::apply(Instant now, const policy::Apply& update, ChiefActions& out) {
  weights_.resize(update.members.size());
  strategy_.weigh(update, weights_);
  const bool gradients = strategy_.payload() == policy::Payload::gradient;
  const auto kind = !gradients                       ? wire::UpdateKind::delta
                    : update.options.bypass_momentum ? wire::UpdateKind::bypass_momentum
                                                     : wire::UpdateKind::gradient;
  wire::Apply message{version_.next(),         kind, schedule_.rate(ledger_.counted()), strategy_.momentum(),
                      strategy_.share(update), {},   strategy_.compensation(update)};
  message.parts.reserve(update.members.size());
  for (std::size_t i = 0; i < update.members.size(); ++i) {
    const policy::Contribution& member = update.members[i];
    const StepTable::CompleteStep complete = steps_.take_complete(member.worker, member.step);
    message.parts.push_back({member.worker, member.step, weights_[i], complete.parameters});
    ledger_.count(complete.lease);
    out.emplace_back(
        Counted{member.worker, member.step, message.version, member.report.samples, version_.ahead_of(member.base), weights_[i]});
  }
  message.next_rate = schedule_.rate(ledger_.counted());
  version_ = message.version;
  tell_servers(message, out);
  const auto part = [&](double samples) { return samples / static_cast<double>(ledger_.total()); };
  const auto counted = static_cast<double>(ledger_.counted());
  strategy_.updated(version_,
                    {part(counted), part(counted + static_cast<double>(ledger_.leased())), part(options_.global_batch), message.rate});
  if (snapshots_.evaluation_due(ledger_.counted())) evaluate(out);
  if (snapshots_.checkpoint_due(version_)) checkpoint(now, out);
}

void Chief::cancel(Instant now, const policy::Cancel& which, ChiefActions& out) {
  const auto cancelled = steps_.cancel(which.worker);
  check(!cancelled.empty(), "a cancelled worker has a pending step");
  for (const PendingStep& step : cancelled) {
    give_back(which.worker, step.step, step.lease, out);
    out.emplace_back(Send{peer(which.worker), wire::Cancel{which.worker, step.step}});
    out.emplace_back(Cancelled{which.worker, step.step, which.why});
  }
  progress_.taken_back(now, which.worker);
}

/// An order sent now may be part of the next checkpoint. Its contribution is then sent as fp32 together with the worker's rounding
/// residual, because a checkpoint does not store the residuals of workers.
bool Chief::may_be_saved_next() const {
  const std::uint64_t in_flight = strategy_.in_step() ? 1U + strategy_.overlap() : 2 * membership_.size();
  return snapshots_.checkpoint_within(in_flight, version_);
}

void Chief::order_next(Instant now, policy::Release release, ChiefActions& out) {
  const WorkerId worker = release.worker;
  policy::Plan plan = strategy_.plan(worker);
  Lease lease = ledger_.grant(plan.samples + plan.time_limit.spare, orders_.shard(worker));
  if (lease.empty()) {
    out.emplace_back(Idled{worker});
    strategy_.idled(now, worker, decisions_);
    return;
  }
  if (may_be_saved_next()) plan.bits.push = fp32_bits;
  const auto samples = static_cast<std::uint32_t>(lease.size());
  OrderIssuer::Issued issued = orders_.issue(
      now, worker, {plan, std::move(lease), version_, schedule_.rate(ledger_.counted()), clock_.trained(now)}, strategy_, steps_);
  out.emplace_back(Released{worker, issued.order.step, version_, release.why, plan.bits});
  if (issued.release) tell_servers(*issued.release, out);
  out.emplace_back(Send{peer(worker), std::move(issued.order)});
  steps_.add(worker, std::move(issued.step));
  progress_.ordered(now, worker, samples);
  strategy_.ordered(now, worker, samples);
}

// Evaluations, checkpoints and the end -------------------------------------------------------------------------------------------------

void Chief::evaluate(ChiefActions& out) {
  snapshots_.evaluated(version_, ledger_.counted());
  out.emplace_back(Evaluate{version_, ledger_.counted()});
  tell_servers(wire::Export{version_}, out);
}

void Chief::checkpoint(Instant now, ChiefActions& out) {
  snapshots_.saved(version_);
  out.emplace_back(Checkpoint{{.version = version_,
                               .counted = ledger_.counted_positions(),
                               .next_evaluation = snapshots_.next_evaluation(),
                               .evaluated = snapshots_.newest_evaluated(),
                               .next_worker = membership_.next_id(),
                               .trained = clock_.trained(now),
                               .strategy = strategy_.save()}});
  tell_servers(wire::Export{version_, true}, out);
}

void Chief::finish(Instant now, EndReason why, ChiefActions& out) {
  if (finished_) return;
  finished_ = true;
  finished_at_ = now;
  if (!snapshots_.is_evaluated(version_)) evaluate(out);
  const bool worth_keeping = options_.checkpoint_every > 0 ? why != EndReason::diverged : why == EndReason::interrupted;
  if (worth_keeping && clock_.started() && !snapshots_.is_saved(version_)) checkpoint(now, out);
  for (const WorkerId worker : membership_.all()) out.emplace_back(Send{peer(worker), wire::Stop{}});
  for (const auto& [connection, hello] : admission_.pending()) out.emplace_back(Send{pending_worker(connection), wire::Stop{}});
  out.emplace_back(Finished{why});
}

void Chief::tell_servers(const wire::Message& message, ChiefActions& out) const {
  for (std::uint32_t s = 0; s < options_.servers; ++s) out.emplace_back(Send{Peer{Role::server, s}, message});
}

}  // namespace motley::protocol
