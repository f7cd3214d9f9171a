#include "protocol/chief.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "policy/credible.h"

namespace motley::protocol {
namespace {

/// What a worker says of itself may be anything; 0 stands for nothing.
double sound(double told) {
  constexpr double least = 1e-6;
  constexpr double most = 1e12;
  return told >= least && told <= most ? told : 0;
}

}  // namespace

Chief::Chief(const ChiefOptions& options, policy::Strategy strategy, const policy::Schedule& schedule)
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
  std::visit(match{[&](const Received& e) { hear(now, e, out); },
                   [&](const Lost& e) {
                     if (!finished_ && duties_.contains(e.worker)) expel(now, e.worker, Gone::connection_lost, out);
                   },
                   [&](const LostGuest& e) { forget_guest(now, e.connection); },
                   [&](const Tick&) {
                     if (!finished_) tick(now, out);
                     watch_servers(now, out);
                   },
                   [&](const Interrupted&) { finish(now, Ended::interrupted, out); }, [&](const Unattended& e) { unattended(e.time); },
                   [&](const ModelNotFinite&) { finish(now, Ended::diverged, out); }},
             event);
}

// Hearing ----------------------------------------------------------------------------------------------------------------------------

void Chief::hear(Instant now, const Received& received, ChiefActions& out) {
  if (const auto* hi = std::get_if<wire::Hello>(&received.message)) return hello(now, received, *hi, out);
  if (const auto* got = std::get_if<wire::Gathered>(&received.message)) {
    if (received.from == peer(got->server)) gathered(now, *got, out);
    return;
  }
  if (const auto* judgement = std::get_if<wire::Judged>(&received.message)) {
    if (received.from == peer(judgement->server)) judged(now, *judgement, out);
    return;
  }
  if (const auto* alive = std::get_if<wire::Probe>(&received.message)) {
    if (received.from == peer(alive->server)) watch_.answered(alive->server);
    return;
  }
  // Everything else is a member's word, and for itself.
  if (received.from.role != Role::worker) return;
  const WorkerId worker{received.from.id};
  if (!membership_.heard(now, worker)) {
    out.emplace_back(Send{received.from, finished_ ? wire::Message{wire::Stop{}} : wire::Message{wire::Fenced{worker}}});
    return;
  }
  if (finished_) return;  // its Stop is on the way
  if (const auto* said = std::get_if<wire::Contributed>(&received.message); said != nullptr && said->worker == worker)
    contributed(now, *said, out);
  if (std::holds_alternative<wire::Leaving>(received.message)) expel(now, worker, Gone::said_goodbye, out);
}

void Chief::hello(Instant now, const Received& received, const wire::Hello& hello, ChiefActions& out) {
  if (received.from.role != Role::guest) return;
  if (finished_) {
    out.emplace_back(Send{received.from, wire::Stop{}});
    return;
  }
  const std::uint32_t connection = received.from.id;
  empty_since_.reset();
  if (!started_) {
    if (guests_.empty()) first_guest_ = now;
    guests_.insert_or_assign(connection, hello);
    if (guests_.size() >= options_.quorum) start(now, out);
    return;
  }
  const auto before = by_connection_.find(connection);
  if (before != by_connection_.end() && duties_.contains(before->second)) expel(now, before->second, Gone::connection_lost, out);
  const policy::Newcomer newcomer = welcome(now, connection, hello, out);
  admit(now, {&newcomer, 1}, out);
}

policy::Newcomer Chief::welcome(Instant now, std::uint32_t connection, const wire::Hello& hello, ChiefActions& out) {
  const WorkerId worker = membership_.join(now, hello.node);
  by_connection_[connection] = worker;
  duties_[worker].shard = hello.seat == wire::no_seat ? worker.value : hello.seat;
  duties_[worker].halves = hello.halves;
  empty_since_.reset();
  out.emplace_back(Send{guest(connection), wire::Welcome{worker, hello.attempt}});
  out.emplace_back(Joined{worker, hello.node});
  return {worker,      hello.most_samples, std::max(hello.grain, 1U), hello.near, sound(hello.samples_per_second), sound(hello.overhead_s),
          hello.halves};
}

void Chief::start(Instant now, ChiefActions& out) {
  started_ = true;
  started_at_ = now;
  std::vector<std::pair<std::uint32_t, wire::Hello>> in_order(guests_.begin(), guests_.end());
  guests_.clear();
  std::stable_sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) {  // equals stay in order of their connections
    return std::tie(a.second.seat, a.second.node) < std::tie(b.second.seat, b.second.node);
  });
  std::vector<policy::Newcomer> newcomers;
  for (const auto& [connection, hello] : in_order) newcomers.push_back(welcome(now, connection, hello, out));
  admit(now, newcomers, out);
}

void Chief::admit(Instant now, std::span<const policy::Newcomer> newcomers, ChiefActions& out) {
  strategy_.joined(now, newcomers, decisions_);
  carry_out(now, out);
}

void Chief::forget_guest(Instant now, std::uint32_t connection) {
  by_connection_.erase(connection);
  if (guests_.erase(connection) == 0 || !guests_.empty()) return;
  first_guest_.reset();
  empty_since_ = now;
}

void Chief::expel(Instant now, WorkerId worker, Gone why, ChiefActions& out, const std::optional<Left::Stuck>& stuck) {
  const auto duty = duties_.find(worker);
  check(duty != duties_.end(), "only a member can be expelled");
  tell_servers(wire::Forget{worker}, out);  // first: a slice that came between a Discard and this would be kept for ever
  for (const Outstanding& order : duty->second.outstanding) {
    ledger_.give_back(order.lease);
    tell_servers(wire::Discard{worker, order.step}, out);
  }
  duties_.erase(duty);
  progress_.left(worker);
  membership_.leave(worker);
  if (membership_.size() == 0) empty_since_ = now;
  if (why == Gone::silent_too_long || why == Gone::step_too_long)
    out.emplace_back(Send{peer(worker), wire::Fenced{worker}});  // the others know
  if (why == Gone::never_finite || why == Gone::sent_not_finite) out.emplace_back(Send{peer(worker), wire::Stop{}});
  out.emplace_back(Left{worker, why, stuck});
  strategy_.left(now, worker, decisions_);
  carry_out(now, out);
}

// A contribution's way: said and gathered everywhere -> complete -> with the strategy -> applied ---------------------------------------

Chief::Outstanding* Chief::find(WorkerId worker, Step step) {
  const auto duty = duties_.find(worker);
  if (duty == duties_.end()) return nullptr;
  auto& orders = duty->second.outstanding;
  const auto order = std::find_if(orders.begin(), orders.end(), [&](const Outstanding& o) { return o.step == step; });
  return order == orders.end() ? nullptr : &*order;
}

void Chief::contributed(Instant now, const wire::Contributed& said, ChiefActions& out) {
  Outstanding* order = find(said.worker, said.step);
  if (order == nullptr || order->said) return;
  order->said = said;
  order->said_before = std::exchange(duties_.at(said.worker).said_last, now);
  order->said_at = now;
  complete_if_whole(now, said.worker, *order, out);
}

void Chief::gathered(Instant now, const wire::Gathered& said, ChiefActions& out) {
  Outstanding* order = find(said.worker, said.step);
  if (order == nullptr || finished_) return;
  if (!order->gathered.insert(said.server).second) return;
  order->applicable = order->applicable && said.finite;
  complete_if_whole(now, said.worker, *order, out);
}

void Chief::judged(Instant now, const wire::Judged& said, ChiefActions& out) {
  const auto found = judgements_.find({said.worker, said.step});
  if (found == judgements_.end() || finished_ || !found->second.said.insert(said.server).second) return;
  found->second.along += said.along;
  if (found->second.said.size() < options_.servers) return;
  const double along = found->second.along;
  judgements_.erase(found);
  strategy_.judged(now, {said.worker, said.step}, along, decisions_);
  carry_out(now, out);
}

void Chief::complete_if_whole(Instant now, WorkerId worker, const Outstanding& order, ChiefActions& out) {
  if (!order.said || order.gathered.size() < options_.servers) return;
  const wire::Contributed said = *order.said;
  const bool finite = said.finite && std::isfinite(said.squared_norm) && std::isfinite(said.loss_sum);
  if (!finite || said.squared_norm < 0) return refuse(now, worker, order, out);
  if (!order.applicable) {
    out.emplace_back(Dropped{worker, order.step, policy::Why::not_finite});
    return expel(now, worker, Gone::sent_not_finite, out);
  }
  refusals_ = 0;
  Lease lease = order.lease;
  const auto ordered = static_cast<std::uint32_t>(lease.size());
  // How much it did is what it was ordered to do, whatever it says, unless its time was limited.
  const std::uint32_t done = order.limited ? std::clamp(said.samples, 1U, ordered) : ordered;
  const Duration compute = credible(now, duties_.at(worker), order);
  policy::Contribution contribution{worker,
                                    said.step,
                                    said.base,
                                    done,
                                    order.local_steps,
                                    std::sqrt(said.squared_norm),
                                    compute,
                                    ordered,
                                    order.spare || done < ordered,
                                    now - order.said_at,
                                    said.pull,
                                    order.bits,
                                    said.loss_sum / done,
                                    said.residual,
                                    said.most_samples,
                                    said.moved,
                                    now,
                                    said.first_of_size};
  const Lease rest = lease.cut(done);
  complete_.emplace(std::pair{worker, order.step}, Complete{std::move(lease), order.parameters});
  Duty& duty = duties_.at(worker);
  duty.refusals = 0;
  duty.good_at = order.version;
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
Duration Chief::credible(Instant now, const Duty& duty, const Outstanding& order) {
  const Duration pull = std::clamp(order.said->pull, Duration{0}, std::max(order.said_at - order.ordered_at, Duration{0}));
  const Instant began = std::max(order.said_before, order.ordered_at + pull);
  return policy::credible_compute(order.said->compute, order.said_at - began, now - std::max(duty.done_last, order.ordered_at));
}

/// This order has come to its end; the next one's time begins.
void Chief::close(Instant now, WorkerId worker, const Outstanding& order) {
  Duty& duty = duties_.at(worker);
  duty.done_last = now;
  duty.outstanding.erase(duty.outstanding.begin() + (&order - duty.outstanding.data()));
  progress_.done(now, worker, duty.outstanding.empty() ? 0 : duty.outstanding.front().lease.size());
}

void Chief::refuse(Instant now, WorkerId worker, const Outstanding& order, ChiefActions& out) {
  const Step step = order.step;
  ledger_.give_back(order.lease);
  Duty& duty = duties_.at(worker);
  if (duty.refusals == 0) duty.refused_at = order.version;
  close(now, worker, order);
  tell_servers(wire::Discard{worker, step}, out);
  out.emplace_back(Dropped{worker, step, policy::Why::not_finite});
  ++refusals_;
  if (++duty.refusals >= options_.refusals_of_one && others_fare_better(duty)) return expel(now, worker, Gone::never_finite, out);
  if (refusals_ >= options_.refusals_in_a_row && !others_will_tell(duty)) return finish(now, Ended::diverged, out);
  strategy_.refused(now, worker, decisions_);
  carry_out(now, out);
}

/// More of them had finite numbers last, on parameters as new as its first refused ones, than had not: then it is not the model.
bool Chief::others_fare_better(const Duty& duty) const {
  int better = 0;
  for (const auto& [worker, other] : duties_) {
    if (&other == &duty) continue;
    if (other.refusals > 0)
      --better;
    else if (other.good_at && (other.outstanding.empty() || *other.good_at >= duty.refused_at))
      ++better;
  }
  return better > 0;
}

/// Somebody is at a step whose outcome will tell the worker's fault from the model's.
bool Chief::others_will_tell(const Duty& duty) const {
  return std::any_of(duties_.begin(), duties_.end(),
                     [&](const auto& one) { return &one.second != &duty && one.second.refusals == 0 && !one.second.outstanding.empty(); });
}

void Chief::carry_out(Instant now, ChiefActions& out) {
  for (const policy::Apply& update : decisions_.apply) apply(now, update, out);
  for (const policy::Judge& which : decisions_.judge) judge(now, which, out);
  for (const policy::Drop& which : decisions_.drop) drop(which, out);
  for (const policy::Cancel& which : decisions_.cancel) cancel(now, which, out);
  // A worker that rests may let others go, which appends to the list.
  for (std::size_t next = 0; next < decisions_.release.size();) order_next(now, decisions_.release[next++], out);
  for (const policy::Hold& hold : decisions_.hold) out.emplace_back(Held{hold.worker, hold.why, hold.gap});
  for (const policy::Note& note : decisions_.note) out.emplace_back(Noted{note});
  if (decisions_.wake) out.emplace_back(WakeAt{*decisions_.wake});
  decisions_.clear();
  if (ledger_.complete()) finish(now, Ended::every_sample_counted, out);
}

void Chief::apply(Instant now, const policy::Apply& update, ChiefActions& out) {
  weights_.resize(update.members.size());
  strategy_.weigh(update, weights_);
  const bool gradients = strategy_.payload() == policy::Payload::gradient;
  const auto kind = !gradients ? wire::UpdateKind::delta : update.treatment.apart ? wire::UpdateKind::apart : wire::UpdateKind::gradient;
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

void Chief::judge(Instant now, const policy::Judge& which, ChiefActions& out) {
  judgements_.emplace(ContributionKey{which.worker, which.step}, Judgement{now, 0, {}});
  tell_servers(wire::Judge{which.worker, which.step}, out);
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
  auto& outstanding = duties_.at(which.worker).outstanding;
  check(!outstanding.empty(), "who is cancelled has something to do");
  for (const Outstanding& order : outstanding) {
    ledger_.give_back(order.lease);
    tell_servers(wire::Discard{which.worker, order.step}, out);
    out.emplace_back(Send{peer(which.worker), wire::Cancel{which.worker, order.step}});
    out.emplace_back(Cancelled{which.worker, order.step, which.why});
  }
  outstanding.clear();
  progress_.taken_back(now, which.worker);
}

// Endings ----------------------------------------------------------------------------------------------------------------------------

Duration Chief::trained(Instant now) const { return trained_before_ + (started_ ? now - started_at_ : Duration{0}); }

void Chief::evaluate(ChiefActions& out) {
  evaluated_ = version_;
  while (next_evaluation_ <= ledger_.counted()) next_evaluation_ += options_.evaluate_every;
  out.emplace_back(Evaluate{version_, ledger_.counted()});
  tell_servers(wire::Export{version_}, out);
}

void Chief::checkpoint(Instant now, ChiefActions& out) {
  saved_ = version_;
  out.emplace_back(Checkpoint{
      {version_, ledger_.counted_positions(), next_evaluation_, evaluated_, membership_.next_id(), trained(now), strategy_.save()}});
  tell_servers(wire::Export{version_, true}, out);
}

void Chief::finish(Instant now, Ended why, ChiefActions& out) {
  if (finished_) return;
  finished_ = true;
  finished_at_ = now;
  if (evaluated_ < version_) evaluate(out);
  const bool worth_keeping = options_.checkpoint_every > 0 ? why != Ended::diverged : why == Ended::interrupted;
  if (worth_keeping && started_ && saved_ != version_) checkpoint(now, out);
  for (const WorkerId worker : membership_.all()) out.emplace_back(Send{peer(worker), wire::Stop{}});
  for (const auto& [connection, hello] : guests_) out.emplace_back(Send{guest(connection), wire::Stop{}});
  out.emplace_back(Finished{why});
}

void Chief::tell_servers(const wire::Message& message, ChiefActions& out) const {
  for (std::uint32_t s = 0; s < options_.servers; ++s) out.emplace_back(Send{Peer{Role::server, s}, message});
}

}  // namespace motley::protocol
