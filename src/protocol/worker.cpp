#include "protocol/worker.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/match.h"

namespace motley::protocol {

Worker::Worker(WorkerOptions options) : options_(std::move(options)) {
  check(!options_.servers_of_slices.empty(), "a model has at least one slice");
}

void Worker::step(Instant now, const WorkerEvent& event, WorkerActions& out) {
  if (std::holds_alternative<Over>(state_)) return;
  std::visit(match{[&](const Started&) { say_hello(now, out); }, [&](const Arrived& e) { arrived(now, e.message, out); },
                   [&](const Produced& e) { produced(e, out); }, [&](const Computed& e) { computed(now, e, out); },
                   [&](const TimePassed&) { time_passed(now, out); }, [&](const AskedToLeave&) { leave(out); },
                   [&](const DeviceFree&) {
                     if (stopping()) say_hello(now, out);
                   }},
             event);
}

void Worker::say_hello(Instant now, WorkerActions& out) {
  id_.reset();
  state_ = Outside{};
  orders_.clear();
  send_to_chief(
      now, wire::Hello{.node = options_.node, .attempt = ++attempt_, .node_index = options_.node_index, .profile = options_.profile}, out);
}

void Worker::arrived(Instant now, const wire::Message& message, WorkerActions& out) {
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) {
    if (id_ || stopping() || welcome->attempt != attempt_) return;
    id_ = welcome->worker;
    state_ = Waiting{};
  } else if (const auto* order = std::get_if<wire::Order>(&message)) {
    if (order->worker != id_ || (!orders_.empty() && order->step <= orders_.back().order.step)) return;
    orders_.push_back({*order, now});
    compute_if_ready(now, out);
  } else if (const auto* slice = std::get_if<wire::Pulled>(&message)) {
    if (!id_ || slice->worker == *id_) pulled(now, *slice, out);
  } else if (const auto* fenced = std::get_if<wire::Fenced>(&message)) {
    if (fenced->worker != id_) return;
    out.emplace_back(Abandon{});
    id_.reset();
    orders_.clear();
    state_ = Stopping{};
    out.emplace_back(AwaitDevice{});
  } else if (const auto* cancel = std::get_if<wire::Cancel>(&message)) {
    if (cancel->worker == id_) cancelled(now, cancel->step, out);
  } else if (std::holds_alternative<wire::Stop>(message)) {
    state_ = Over{};
    out.emplace_back(Abandon{});
    out.emplace_back(Quit{});
  }
}

/// Slices that were already computed may be in flight; the server frees them.
void Worker::cancelled(Instant now, Step step, WorkerActions& out) {
  std::erase_if(orders_, [&](const Ordered& waiting) { return waiting.order.step == step; });
  const auto* computing = std::get_if<Computing>(&state_);
  if (computing == nullptr || computing->order.step != step) return;
  state_ = Waiting{};
  out.emplace_back(Abandon{});
  compute_if_ready(now, out);
}

void Worker::pulled(Instant now, const wire::Pulled& slice, WorkerActions& out) {
  const PullKey key{slice.worker, slice.step};
  if (used_ && key < *used_) return;  // ids and steps only grow: slices of an earlier pull are too late
  Pulling& pull = pulls_.try_emplace(key, Pulling{slice.version, 0, std::nullopt}).first->second;
  if (++pull.slices == options_.servers_of_slices.size()) pull.last_slice = now;
  compute_if_ready(now, out);
}

void Worker::compute_if_ready(Instant now, WorkerActions& out) {
  if (!std::holds_alternative<Waiting>(state_) || orders_.empty()) return;
  const auto& [order, at] = orders_.front();
  if (!could_begin(order)) return;
  const PullKey key{order.worker, order.parameters};
  const auto pull = pulls_.find(key);
  pulls_.erase(pulls_.begin(), pull);
  used_ = key;
  Computing next{order, pull->second.base};
  next.ordered = at;
  orders_.pop_front();
  send_to_chief(now, wire::Began{*id_, next.order.step}, out);
  out.emplace_back(Compute{next.order, next.base});
  state_ = std::move(next);
}

const wire::Order* Worker::next_step() const {
  if (!std::holds_alternative<Computing>(state_) || orders_.empty()) return nullptr;
  const wire::Order& order = orders_.front().order;
  return could_begin(order) ? &order : nullptr;
}

/// All its parameters have arrived, or the first if the device waits for the others while it computes.
bool Worker::could_begin(const wire::Order& order) const {
  const auto pull = pulls_.find({order.worker, order.parameters});
  const std::size_t enough = options_.start_early ? 1 : options_.servers_of_slices.size();
  return pull != pulls_.end() && pull->second.slices >= enough;
}

/// Transfer time of the parameters as observed by this worker; 0 when they had arrived for an earlier step.
Duration Worker::pull_time(const Computing& computing) const {
  if (computing.order.parameters != computing.order.step) return {};
  const auto pull = pulls_.find({computing.order.worker, computing.order.step});
  if (pull == pulls_.end() || !pull->second.last_slice) return {};
  return std::max(*pull->second.last_slice - computing.ordered, Duration{1});
}

void Worker::push(Computing& computing, SliceId slice, WorkerActions& out) const {
  computing.pushed.resize(options_.servers_of_slices.size());
  if (computing.pushed[slice.value]) return;
  computing.pushed[slice.value] = true;
  const wire::Order& order = computing.order;
  out.emplace_back(Send{peer(options_.servers_of_slices[slice.value]), wire::Push{*id_, order.step, slice, order.push_bits}});
}

void Worker::produced(const Produced& slice, WorkerActions& out) {
  auto* computing = std::get_if<Computing>(&state_);
  if (computing == nullptr || computing->order.step != slice.step || slice.slice.value >= options_.servers_of_slices.size()) return;
  push(*computing, slice.slice, out);
}

void Worker::computed(Instant now, const Computed& result, WorkerActions& out) {
  auto* computing = std::get_if<Computing>(&state_);
  if (computing == nullptr || computing->order.step != result.step) return;
  for (std::uint32_t s = 0; s < options_.servers_of_slices.size(); ++s) push(*computing, SliceId{s}, out);
  const wire::Order& order = computing->order;
  const auto all = static_cast<std::uint32_t>(order.lease.size());
  StepReport report = result.report;
  report.samples = report.samples == 0 ? all : std::min(report.samples, all);
  report.local_steps = order.local_steps;
  report.pull = pull_time(*computing);
  send_to_chief(now, wire::Contributed{.worker = *id_, .step = order.step, .base = computing->base, .report = report}, out);
  state_ = Waiting{};
  compute_if_ready(now, out);
}

void Worker::time_passed(Instant now, WorkerActions& out) {
  if (!id_) {
    if (!stopping() && now - last_sent_ >= options_.patience) say_hello(now, out);
  } else if (now - last_sent_ >= options_.heartbeat) {
    send_to_chief(now, wire::Heartbeat{*id_}, out);
  }
}

void Worker::leave(WorkerActions& out) {
  if (id_) out.emplace_back(Send{the_chief, wire::Leaving{*id_}});
  state_ = Over{};
  out.emplace_back(Abandon{});
  out.emplace_back(Quit{});
}

void Worker::send_to_chief(Instant now, wire::Message message, WorkerActions& out) {
  last_sent_ = now;
  out.emplace_back(Send{the_chief, std::move(message)});
}

}  // namespace motley::protocol
