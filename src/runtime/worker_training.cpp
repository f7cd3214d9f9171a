#include "runtime/worker_training.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/match.h"
#include "codec/codec.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

constexpr std::size_t most_orders = 64;  // that wait; with overlap there is one

}  // namespace

WorkerTraining::WorkerTraining(boost::asio::io_context& event_loop, Options options, StepExecutor& executor, ServerConnections& servers,
                               WorkerTrainingOwner& owner)
    : executor_(executor),
      servers_(servers),
      owner_(owner),
      epoch_samples_(options.epoch_samples),
      tick_(options.machine.heartbeat / 2),
      machine_(std::move(options.machine)),
      parameters_(executor.layout(), {.keeps_values = executor.keeps_values(), .bf16_transfer = executor.bf16_transfer()}),
      push_(executor.layout(), executor.local_steps()),
      heartbeat_(event_loop) {}

void WorkerTraining::start() {
  executor_.start_over();
  tell(protocol::Started{});
  heartbeat_.start(tick_, [this] { tell(protocol::TimePassed{}); });
}

void WorkerTraining::stop() {
  stopped_ = true;
  heartbeat_.stop();
  scope_.cancel();
}

// Messages -------------------------------------------------------------------------------------------------------------------------------

wire::Objection WorkerTraining::objection(const PeerConnection& from, const wire::Message& message) const {
  if (const auto* order = std::get_if<wire::Order>(&message)) return objection_to_order(*order);
  const auto* pulled = std::get_if<wire::Pulled>(&message);
  if (pulled == nullptr) return {};
  const std::optional<ServerId> server = servers_.id_of(from);
  return server ? parameters_.objection(*server, *pulled) : wire::Objection{"it is no server of this job"};
}

wire::Objection WorkerTraining::objection_to_order(const wire::Order& order) const {
  if (machine_.waiting() >= most_orders) return fmt::format("more than {} orders wait", most_orders);
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

void WorkerTraining::on_message(const wire::Message& message) {
  if (const auto* order = std::get_if<wire::Order>(&message)) training_.emplace(order->training);
  tell(protocol::Arrived{message});
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) attach_if_admitted(*welcome);
}

/// A server sends nothing before it knows which member this connection belongs to.
void WorkerTraining::attach_if_admitted(const wire::Welcome& welcome) {
  if (stopped_ || machine_.id() != welcome.worker || parameters_.member() == welcome.worker) return;
  parameters_.receive_for(welcome.worker);
  const wire::Attach attach{welcome.worker, welcome.key};
  servers_.at(ServerId{0}).send(attach);
  servers_.send_beside_chief(attach);
}

// Parameters -----------------------------------------------------------------------------------------------------------------------------

void WorkerTraining::received(PeerConnection& from, const wire::Pulled& pulled) {
  const auto incoming = parameters_.received(from, pulled);
  if (!incoming) return owner_.lose(incoming.error().message);
  if (*incoming) arrived(pulled, *incoming);
}

bool WorkerTraining::accept_in_place(const wire::Pulled& pulled, std::span<const std::byte> payload,
                                     const transport::BorrowedMemory& borrow) {
  const auto incoming = parameters_.accept_in_place(pulled, payload, borrow);
  if (!incoming) return false;
  arrived(pulled, incoming);
  return true;
}

void WorkerTraining::arrived(const wire::Pulled& pulled, const std::shared_ptr<IncomingParameters>& incoming) {
  if (executor_.local_steps() && computing_ && computing_->order.step < pulled.step) computing_->comes(incoming);
  if (computing_ && computing_->values == incoming) parameters_.drop_before(pulled.worker, pulled.step);
  tell(protocol::Arrived{pulled});
}

// The machine and its answers ------------------------------------------------------------------------------------------------------------

void WorkerTraining::tell(const protocol::WorkerEvent& event) {
  if (stopped_) return;
  protocol::WorkerActions actions;
  machine_.step(clock_.now(), event, actions);
  for (const auto& action : actions) {
    if (stopped_) return;
    carry_out(action);
  }
  if (!stopped_ && executor_.begins_next_step_early()) prefetch();
}

void WorkerTraining::carry_out(const protocol::WorkerAction& action) {
  std::visit(match{[&](const protocol::Send& a) { send(a); }, [&](const protocol::Compute& a) { compute(a.order); },
                   [&](const protocol::Abandon&) {
                     computing_.reset();
                     executor_.abandon();
                   },
                   [&](const protocol::AwaitDevice&) { await_device(); }, [&](const protocol::Quit&) { owner_.quit(); }},
             action);
}

void WorkerTraining::send(const protocol::Send& send) {
  const auto* push = std::get_if<wire::Push>(&send.message);
  if (push == nullptr) return servers_.at(ServerId{0}).send(send.message);
  check(computing_ != nullptr, "what is pushed was computed");
  push_.send(servers_.at(ServerId{send.to.id}), *push, *computing_);
}

void WorkerTraining::compute(const wire::Order& order) {
  auto computation = std::make_shared<Computation>();
  computation->order = order;
  computation->samples = order.lease.size();
  computation->values = parameters_.find(order.worker, order.parameters);
  check(computation->values != nullptr, "what is computed on has begun to arrive");
  computation->out = make_shareable_buffer(executor_.layout().values);
  computation->began = training_->now();
  parameters_.drop_before(order.worker, order.parameters);
  computing_ = computation;
  executor_.compute(computation, *training_);
}

void WorkerTraining::await_device() {
  executor_.when_free(scope_.bind([this] { tell(protocol::DeviceFree{}); }));
}

/// The executor may begin the next step before the present one has ended.
void WorkerTraining::prefetch() {
  const wire::Order* next = machine_.next_step();
  if (next == nullptr || prefetched_ == next->step) return;
  const auto values = parameters_.find(next->worker, next->parameters);
  if (!values) return;
  prefetched_ = next->step;
  executor_.prefetch(*next, values);
}

void WorkerTraining::produced(const Computation& computation, SliceId slice) {
  if (computing_.get() == &computation) tell(protocol::Produced{computation.order.step, slice});
}

void WorkerTraining::computed(const Computation& computation, const StepReport& report) {
  if (computing_.get() != &computation) return;
  protocol::Computed done{.step = computation.order.step, .report = report};
  if (computation.coded == 0) done.report.residual = push_.residual_ratio();
  tell(done);
  if (computing_.get() == &computation) computing_.reset();  // else the next step is being computed already
}

}  // namespace motley::runtime
