#include "protocol/chief.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "policy/credible_compute.h"

namespace motley::protocol {
namespace {

/// What a worker says of itself may be anything; 0 stands for nothing.
double is_valid_cut(double recorded) {
  constexpr double least = 1e-6;
  constexpr double most = 1e12;
  return recorded >= least && recorded <= most ? recorded : 0;
}

}  // namespace

Chief::Chief(const ChiefOptions& options, policy::Strategy strategy, const policy::LrSchedule& schedule)
    : options_(options),
      strategy_(std::move(strategy)),
      schedule_(schedule),
      membership_(options.silence_deadline),
      ledger_(options.epoch_samples, options.total_samples, options.shards),
      progress_(options.step_limit),
      watch_(options.servers, options.step_limit),
      next_evaluation_(options.evaluate_every) {
  check(options.servers >= 1 && options.evaluate_every >= 1, "there is a server, and evaluations are apart");
}

void Chief::step(Instant now, const ChiefEvent& event, ChiefActions& out) {
  std::visit(
      match{[&](const Received& e) { receive(now, e, out); },
            [&](const Lost& e) {
              if (!finished_ && worker_states_.contains(e.worker)) expel(now, e.worker, LeaveReason::connection_lost, out);
            },
            [&](const LostPending& e) { forget_pending(now, e.connection); },
            [&](const Tick&) {
              if (!finished_) tick(now, out);
              watch_servers(now, out);
            },
            [&](const Interrupted&) { finish(now, EndReason::interrupted, out); }, [&](const DriverPaused& e) { driver_paused(e.time); },
            [&](const ModelNotFinite&) { finish(now, EndReason::diverged, out); }},
      event);
}

// Hearing ----------------------------------------------------------------------------------------------------------------------------

void Chief::receive(Instant now, const Received& received, ChiefActions& out) {
  if (const auto* hi = std::get_if<wire::Hello>(&received.message)) return hello(now, received, *hi, out);
  if (const auto* got = std::get_if<wire::Gathered>(&received.message)) {
    if (received.from == peer(got->server)) gathered(now, *got, out);
    return;
  }
  if (const auto* pending_alignment = std::get_if<wire::AlignmentResult>(&received.message)) {
    if (received.from == peer(pending_alignment->server)) alignment_known(now, *pending_alignment, out);
    return;
  }
  if (const auto* alive = std::get_if<wire::Probe>(&received.message)) {
    if (received.from == peer(alive->server)) watch_.answered(alive->server);
    return;
  }
  // Everything else is a member's word, and for itself.
  if (received.from.role != Role::worker) return;
  const WorkerId worker{received.from.id};
  if (!membership_.record_contact(now, worker)) {
    out.emplace_back(Send{received.from, finished_ ? wire::Message{wire::Stop{}} : wire::Message{wire::Fenced{worker}}});
    return;
  }
  if (finished_) return;  // its Stop is on the way
  if (const auto* reported = std::get_if<wire::Contributed>(&received.message); reported != nullptr && reported->worker == worker)
    contributed(now, *reported, out);
  if (std::holds_alternative<wire::Leaving>(received.message)) expel(now, worker, LeaveReason::said_goodbye, out);
}

void Chief::hello(Instant now, const Received& received, const wire::Hello& hello, ChiefActions& out) {
  if (received.from.role != Role::pending) return;
  if (finished_) {
    out.emplace_back(Send{received.from, wire::Stop{}});
    return;
  }
  const std::uint32_t connection = received.from.id;
  empty_since_.reset();
  if (!started_) {
    if (pending_workers_.empty()) first_pending_ = now;
    pending_workers_.insert_or_assign(connection, hello);
    if (pending_workers_.size() >= options_.quorum) start(now, out);
    return;
  }
  const auto before = by_connection_.find(connection);
  if (before != by_connection_.end() && worker_states_.contains(before->second))
    expel(now, before->second, LeaveReason::connection_lost, out);
  const policy::WorkerProfile profile = welcome(now, connection, hello, out);
  admit(now, {&profile, 1}, out);
}

policy::WorkerProfile Chief::welcome(Instant now, std::uint32_t connection, const wire::Hello& hello, ChiefActions& out) {
  const WorkerId worker = membership_.join(now, hello.node);
  by_connection_[connection] = worker;
  worker_states_[worker].shard = hello.node_index == wire::no_node_index ? worker.value : hello.node_index;
  worker_states_[worker].bf16_transfer = hello.bf16_transfer;
  empty_since_.reset();
  out.emplace_back(Send{pending_worker(connection), wire::Welcome{worker, hello.attempt}});
  out.emplace_back(Joined{worker, hello.node});
  return {worker,
          hello.max_batch,
          std::max(hello.batch_multiple, 1U),
          hello.shared_memory,
          is_valid_cut(hello.samples_per_second),
          is_valid_cut(hello.overhead_s),
          hello.bf16_transfer};
}

void Chief::start(Instant now, ChiefActions& out) {
  started_ = true;
  started_at_ = now;
  std::vector<std::pair<std::uint32_t, wire::Hello>> in_order(pending_workers_.begin(), pending_workers_.end());
  pending_workers_.clear();
  std::stable_sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) {  // equals stay in order of their connections
    return std::tie(a.second.node_index, a.second.node) < std::tie(b.second.node_index, b.second.node);
  });
  std::vector<policy::WorkerProfile> profiles;
  for (const auto& [connection, hello] : in_order) profiles.push_back(welcome(now, connection, hello, out));
  admit(now, profiles, out);
}

void Chief::admit(Instant now, std::span<const policy::WorkerProfile> profiles, ChiefActions& out) {
  strategy_.joined(now, profiles, decisions_);
  carry_out(now, out);
}

void Chief::forget_pending(Instant now, std::uint32_t connection) {
  by_connection_.erase(connection);
  if (pending_workers_.erase(connection) == 0 || !pending_workers_.empty()) return;
  first_pending_.reset();
  empty_since_ = now;
}

void Chief::expel(Instant now, WorkerId worker, LeaveReason why, ChiefActions& out, const std::optional<Left::Stuck>& stuck) {
  const auto worker_state = worker_states_.find(worker);
  check(worker_state != worker_states_.end(), "only a member can be expelled");
  tell_servers(wire::Forget{worker}, out);  // first: a slice that came between a Discard and this would be kept for ever
  for (const PendingStep& order : worker_state->second.pending_steps) {
    ledger_.give_back(order.lease);
    tell_servers(wire::Discard{worker, order.step}, out);
  }
  worker_states_.erase(worker_state);
  progress_.left(worker);
  membership_.leave(worker);
  if (membership_.size() == 0) empty_since_ = now;
  if (why == LeaveReason::silent_too_long || why == LeaveReason::step_too_long)
    out.emplace_back(Send{peer(worker), wire::Fenced{worker}});  // the others know
  if (why == LeaveReason::never_finite || why == LeaveReason::sent_not_finite) out.emplace_back(Send{peer(worker), wire::Stop{}});
  out.emplace_back(Left{worker, why, stuck});
  strategy_.left(now, worker, decisions_);
  carry_out(now, out);
}

// A contribution's way: said and gathered everywhere -> complete -> with the strategy -> applied ---------------------------------------

Chief::PendingStep* Chief::find(WorkerId worker, Step step) {
  const auto worker_state = worker_states_.find(worker);
  if (worker_state == worker_states_.end()) return nullptr;
  auto& orders = worker_state->second.pending_steps;
  const auto order = std::find_if(orders.begin(), orders.end(), [&](const PendingStep& o) { return o.step == step; });
  return order == orders.end() ? nullptr : &*order;
}

void Chief::contributed(Instant now, const wire::Contributed& reported, ChiefActions& out) {
  PendingStep* order = find(reported.worker, reported.step);
  if (order == nullptr || order->reported) return;
  order->reported = reported;
  order->previous_reported_at = std::exchange(worker_states_.at(reported.worker).last_reported_at, now);
  order->reported_at = now;
  complete_if_whole(now, reported.worker, *order, out);
}

void Chief::gathered(Instant now, const wire::Gathered& reported, ChiefActions& out) {
  PendingStep* order = find(reported.worker, reported.step);
  if (order == nullptr || finished_) return;
  if (!order->gathered.insert(reported.server).second) return;
  order->applicable = order->applicable && reported.finite;
  complete_if_whole(now, reported.worker, *order, out);
}

void Chief::alignment_known(Instant now, const wire::AlignmentResult& reported, ChiefActions& out) {
  const auto found = alignment_tests_.find({reported.worker, reported.step});
  if (found == alignment_tests_.end() || finished_ || !found->second.reported.insert(reported.server).second) return;
  found->second.alignment += reported.alignment;
  if (found->second.reported.size() < options_.servers) return;
  const double alignment = found->second.alignment;
  alignment_tests_.erase(found);
  strategy_.alignment_known(now, {reported.worker, reported.step}, alignment, decisions_);
  carry_out(now, out);
}

void Chief::complete_if_whole(Instant now, WorkerId worker, const PendingStep& order, ChiefActions& out) {
  if (!order.reported || order.gathered.size() < options_.servers) return;
  const wire::Contributed reported = *order.reported;
  const bool finite = reported.finite && std::isfinite(reported.squared_norm) && std::isfinite(reported.loss_sum);
  if (!finite || reported.squared_norm < 0) return refuse(now, worker, order, out);
  if (!order.applicable) {
    out.emplace_back(Dropped{worker, order.step, policy::Why::not_finite});
    return expel(now, worker, LeaveReason::sent_not_finite, out);
  }
  refusals_ = 0;
  Lease lease = order.lease;
  const auto ordered = static_cast<std::uint32_t>(lease.size());
  // How much it did is what it was ordered to do, whatever it says, unless its time was limited.
  const std::uint32_t done = order.time_limited ? std::clamp(reported.samples, 1U, ordered) : ordered;
  const Duration compute = credible(now, worker_states_.at(worker), order);
  policy::Contribution contribution{worker,
                                    reported.step,
                                    reported.base,
                                    done,
                                    order.local_steps,
                                    std::sqrt(reported.squared_norm),
                                    compute,
                                    ordered,
                                    order.spare || done < ordered,
                                    now - order.reported_at,
                                    reported.pull,
                                    order.bits,
                                    reported.loss_sum / done,
                                    reported.residual,
                                    reported.max_batch,
                                    reported.update_norm,
                                    now,
                                    reported.first_of_size};
  const Lease rest = lease.cut(done);
  complete_.emplace(std::pair{worker, order.step}, Complete{std::move(lease), order.parameters});
  WorkerState& worker_state = worker_states_.at(worker);
  worker_state.refusals = 0;
  worker_state.good_at = order.version;
  close(now, worker, order);
  out.emplace_back(Completed{worker, contribution.step, contribution.base, contribution.samples, contribution.loss, contribution.pull});
  if (!rest.empty()) {
    ledger_.give_back(rest);
    out.emplace_back(Returned{worker, contribution.step, rest});
  }
  strategy_.contributed(now, contribution, decisions_);
  carry_out(now, out);
}

/// What this worker says of its computing, as far as it can be believed.
Duration Chief::credible(Instant now, const WorkerState& worker_state, const PendingStep& order) {
  const Duration pull = std::clamp(order.reported->pull, Duration{0}, std::max(order.reported_at - order.ordered_at, Duration{0}));
  const Instant began = std::max(order.previous_reported_at, order.ordered_at + pull);
  return policy::credible_compute(order.reported->compute, order.reported_at - began,
                                  now - std::max(worker_state.last_completed_at, order.ordered_at));
}

/// This order has come to its end; the next one's time begins.
void Chief::close(Instant now, WorkerId worker, const PendingStep& order) {
  WorkerState& worker_state = worker_states_.at(worker);
  worker_state.last_completed_at = now;
  worker_state.pending_steps.erase(worker_state.pending_steps.begin() + (&order - worker_state.pending_steps.data()));
  progress_.done(now, worker, worker_state.pending_steps.empty() ? 0 : worker_state.pending_steps.front().lease.size());
}

void Chief::refuse(Instant now, WorkerId worker, const PendingStep& order, ChiefActions& out) {
  const Step step = order.step;
  ledger_.give_back(order.lease);
  WorkerState& worker_state = worker_states_.at(worker);
  if (worker_state.refusals == 0) worker_state.refused_at = order.version;
  close(now, worker, order);
  tell_servers(wire::Discard{worker, step}, out);
  out.emplace_back(Dropped{worker, step, policy::Why::not_finite});
  ++refusals_;
  if (++worker_state.refusals >= options_.refusals_of_one && others_fare_better(worker_state))
    return expel(now, worker, LeaveReason::never_finite, out);
  if (refusals_ >= options_.refusals_in_a_row && !others_will_tell(worker_state)) return finish(now, EndReason::diverged, out);
  strategy_.refused(now, worker, decisions_);
  carry_out(now, out);
}

/// More of them had finite numbers last, on parameters as new as its first refused ones, than had not: then it is not the model.
bool Chief::others_fare_better(const WorkerState& worker_state) const {
  int better = 0;
  for (const auto& [worker, other] : worker_states_) {
    if (&other == &worker_state) continue;
    if (other.refusals > 0)
      --better;
    else if (other.good_at && (other.pending_steps.empty() || *other.good_at >= worker_state.refused_at))
      ++better;
  }
  return better > 0;
}

/// Somebody is at a step whose outcome will tell the worker's fault from the model's.
bool Chief::others_will_tell(const WorkerState& worker_state) const {
  return std::any_of(worker_states_.begin(), worker_states_.end(), [&](const auto& one) {
    return &one.second != &worker_state && one.second.refusals == 0 && !one.second.pending_steps.empty();
  });
}

void Chief::carry_out(Instant now, ChiefActions& out) {
  for (const policy::Apply& update : decisions_.apply) apply(now, update, out);
  for (const policy::AlignmentTest& which : decisions_.test_alignment) judge(now, which, out);
  for (const policy::Drop& which : decisions_.drop) drop(which, out);
  for (const policy::Cancel& which : decisions_.cancel) cancel(now, which, out);
  // A worker that rests may let others go, which appends to the list.
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
    const auto complete = complete_.find({member.worker, member.step});
    check(complete != complete_.end(), "a strategy applies what is complete, once");
    message.parts.push_back({member.worker, member.step, weights_[i], complete->second.parameters});
    ledger_.count(complete->second.lease);
    complete_.erase(complete);
    out.emplace_back(Counted{member.worker, member.step, message.version, member.samples, version_.ahead_of(member.base), weights_[i]});
  }
  message.next_rate = schedule_.rate(ledger_.counted());
  version_ = message.version;
  tell_servers(message, out);
  const auto part = [&](double samples) { return samples / static_cast<double>(ledger_.total()); };
  const auto counted = static_cast<double>(ledger_.counted());
  strategy_.updated(version_,
                    {part(counted), part(counted + static_cast<double>(ledger_.leased())), part(options_.global_batch), message.rate});
  if (ledger_.counted() >= next_evaluation_) evaluate(out);
  if (options_.checkpoint_every > 0 && version_.value % options_.checkpoint_every == 0) checkpoint(now, out);
}

void Chief::judge(Instant now, const policy::AlignmentTest& which, ChiefActions& out) {
  alignment_tests_.emplace(ContributionKey{which.worker, which.step}, PendingAlignment{now, 0, {}});
  tell_servers(wire::AlignmentTest{which.worker, which.step}, out);
}

void Chief::drop(const policy::Drop& which, ChiefActions& out) {
  const auto complete = complete_.find({which.worker, which.step});
  check(complete != complete_.end(), "a strategy drops what is complete, once");
  ledger_.give_back(complete->second.lease);
  complete_.erase(complete);
  tell_servers(wire::Discard{which.worker, which.step}, out);
  out.emplace_back(Discarded{which.worker, which.step, which.why});
}

void Chief::cancel(Instant now, const policy::Cancel& which, ChiefActions& out) {
  auto& pending_steps = worker_states_.at(which.worker).pending_steps;
  check(!pending_steps.empty(), "who is cancelled has something to do");
  for (const PendingStep& order : pending_steps) {
    ledger_.give_back(order.lease);
    tell_servers(wire::Discard{which.worker, order.step}, out);
    out.emplace_back(Send{peer(which.worker), wire::Cancel{which.worker, order.step}});
    out.emplace_back(Cancelled{which.worker, order.step, which.why});
  }
  pending_steps.clear();
  progress_.taken_back(now, which.worker);
}

// Endings ----------------------------------------------------------------------------------------------------------------------------

Duration Chief::trained(Instant now) const { return trained_before_ + (started_ ? now - started_at_ : Duration{0}); }

void Chief::finish(Instant now, EndReason why, ChiefActions& out) {
  if (finished_) return;
  finished_ = true;
  finished_at_ = now;
  if (evaluated_ < version_) evaluate(out);
  const bool worth_keeping = options_.checkpoint_every > 0 ? why != EndReason::diverged : why == EndReason::interrupted;
  if (worth_keeping && started_ && saved_ != version_) checkpoint(now, out);
  for (const WorkerId worker : membership_.all()) out.emplace_back(Send{peer(worker), wire::Stop{}});
  for (const auto& [connection, hello] : pending_workers_) out.emplace_back(Send{pending_worker(connection), wire::Stop{}});
  out.emplace_back(Finished{why});
}

void Chief::tell_servers(const wire::Message& message, ChiefActions& out) const {
  for (std::uint32_t s = 0; s < options_.servers; ++s) out.emplace_back(Send{Peer{Role::server, s}, message});
}

}  // namespace motley::protocol
