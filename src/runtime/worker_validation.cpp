// A worker's process and what its chief and its servers may send it. Whatever does not pass closes the connection, before it reaches the
// worker's machine or a buffer, and the worker tries again.
#include <fmt/format.h>

#include <algorithm>

#include "codec/codec.h"
#include "runtime/worker_process.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

constexpr std::size_t most_orders = 64;    // that wait; with overlap there is one
constexpr std::size_t most_arrivals = 32;  // models that are here in part or whole; three are in use, cancelled steps leave some

}  // namespace

bool WorkerProcess::is_ours(const transport::Connection& connection) const {
  return &connection == incarnation_->chief.get() || std::any_of(incarnation_->servers.begin(), incarnation_->servers.end(),
                                                                 [&](const auto& server) { return server.get() == &connection; });
}

/// In its order: first what the job is, then what to do.
wire::Objection WorkerProcess::objection(const transport::Connection& from, wire::Lane lane, const wire::Message& message) const {
  const bool chief = &from == incarnation_->chief.get();
  if (auto why = wire::objection(chief ? wire::Sender::workers_chief : wire::Sender::workers_server, lane, message)) return why;
  if (std::holds_alternative<wire::JobDescription>(message) == incarnation_->job_received)
    return fmt::format("its {} comes {} the job", wire::name_of(message), incarnation_->job_received ? "after" : "before");
  if (!incarnation_->job_received || std::holds_alternative<wire::Stop>(message)) return {};
  if (!incarnation_->machine) return fmt::format("its {} comes before our Hello", wire::name_of(message));
  if (const auto* order = std::get_if<wire::Order>(&message)) return objection_to_order(*order);
  const auto* pulled = std::get_if<wire::Pulled>(&message);
  return pulled != nullptr ? objection_to_slice(from, *pulled) : wire::Objection{};
}

wire::Objection WorkerProcess::objection_to_order(const wire::Order& order) const {
  if (incarnation_->machine->waiting() >= most_orders) return fmt::format("more than {} orders wait", most_orders);
  if (!codec::make(order.push_bits).ok()) return fmt::format("there is no codec of {} bits", order.push_bits);
  std::uint64_t samples = 0;
  for (const Range& range : order.lease.ranges) {
    if (range.first >= range.last || range.last > epoch_samples_)
      return fmt::format("an order is for samples {} to {} of an epoch of {}", range.first, range.last, epoch_samples_);
    samples += range.size();
  }
  const std::uint64_t most = 4 * epoch_samples_;
  if (samples > most || order.local_steps > most)
    return fmt::format("an order is for {} samples in {} steps, an epoch has {}", samples, order.local_steps, epoch_samples_);
  return {};
}

wire::Objection WorkerProcess::objection_to_slice(const transport::Connection& from, const wire::Pulled& pulled) const {
  const store::Layout& layout = step_executor_->layout();
  if (pulled.slice.value >= layout.slices.size()) return fmt::format("there is no slice {}", pulled.slice.value);
  const store::Slice& slice = layout[pulled.slice];
  if (to_server(slice.server.value) != &from)
    return fmt::format("slice {} is server {}'s, which it is not", pulled.slice.value, slice.server.value);
  if (!codec::make(slice.bits(pulled.bits)).ok()) return fmt::format("there is no codec of {} bits", pulled.bits);
  if (pulled.worker != incarnation_->attached) return {};  // meant for an earlier us
  const auto incoming = incarnation_->incoming_parameters.find({pulled.worker, pulled.step});
  if (incoming == incarnation_->incoming_parameters.end() && incarnation_->incoming_parameters.size() >= most_arrivals)
    return fmt::format("parameters of more than {} steps come", most_arrivals);
  if (incoming != incarnation_->incoming_parameters.end() && incoming->second->has(pulled.slice))
    return fmt::format("slice {} of step {} comes twice", pulled.slice.value, pulled.step.value);
  return {};
}

/// As long as we are no member, neither a chief nor a server hears anything else of us: while we prepare, or wait for others.
void WorkerProcess::stay_known() {
  join_timer_.expires_after(options_.join_heartbeat);
  join_timer_.async_wait([this, alive = alive_, incarnation = incarnations_](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_ || incarnation != incarnations_) return;
    if (!incarnation_->machine || !incarnation_->machine->id()) {
      incarnation_->chief->send(wire::Heartbeat{wire::no_worker});
      for (const auto& server : incarnation_->servers)
        if (server) server->send(wire::Heartbeat{wire::no_worker});
    }
    stay_known();
  });
}

}  // namespace motley::runtime
