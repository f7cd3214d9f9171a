#include "runtime/worker_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>

#include "base/check.h"
#include "base/match.h"
#include "codec/codec.h"
#include "transport/connect.h"

namespace motley::runtime {
namespace {

std::unique_ptr<transport::Shaped> unshaped(std::unique_ptr<transport::Connection> connection, boost::asio::io_context& event_loop,
                                            const transport::Options& options) {
  return std::make_unique<transport::Shaped>(std::move(connection), event_loop.get_executor(), transport::Shape{}, options);
}

}  // namespace

WorkerProcess::WorkerProcess(boost::asio::io_context& event_loop, WorkerProcessOptions options, PrepareWorker prepare, Log log)
    : event_loop_(event_loop),
      options_(std::move(options)),
      prepare_(std::move(prepare)),
      log_(std::move(log)),
      reconnect_(event_loop, options_.reconnect, options_.node, to_text(options_.chief), log_),
      heartbeat_(event_loop),
      join_timer_(event_loop),
      alive_(std::make_shared<bool>(true)) {}

WorkerProcess::~WorkerProcess() { *alive_ = false; }

void WorkerProcess::start(std::function<void(Outcome)> over) {
  over_ = std::move(over);
  if (!wire::is_name(options_.node))
    return finish(bad_input(fmt::format("--node: found \"{}\", expected at most {} printable ASCII characters",
                                        wire::printable(options_.node, wire::longest_name), wire::longest_name)));
  reach();
}

void WorkerProcess::leave() {
  if (ended_ || leaving_) return;
  leaving_ = true;
  if (incarnation_ && incarnation_->machine)
    tell(protocol::AskedToLeave{});
  else
    finish(Done{});
}

// Reaching the others --------------------------------------------------------------------------------------------------------------------

void WorkerProcess::reach() {
  if (ended_) return;
  transport::Options options = options_.transport;
  options.job = setup_ ? setup_->job : transport::JobHash{};
  const std::uint32_t incarnation = ++incarnations_;
  transport::connect(event_loop_, options_.chief, options, [this, alive = alive_, incarnation](auto connection) {
    if (*alive && !ended_ && incarnation == incarnations_) reached(std::move(connection));
  });
}

void WorkerProcess::reached(Result<std::unique_ptr<transport::Connection>> connection) {
  if (!connection) return lose(connection.error());
  reconnect_.proven();
  incarnation_ = Incarnation{};
  incarnation_->chief = unshaped(std::move(*connection), event_loop_, options_.transport);
  incarnation_->chief->start(*this);
  incarnation_->chief->send(wire::JoinRequest{options_.node});
  stay_known();
}

void WorkerProcess::lose(const Error& why) {
  if (ended_) return;
  ++incarnations_;
  heartbeat_.cancel();
  join_timer_.cancel();
  if (step_executor_) step_executor_->abandon();
  if (incarnation_) retired_.push_back({std::move(leaving_slices_), std::move(*incarnation_)});
  incarnation_.reset();
  leaving_slices_.clear();
  boost::asio::post(event_loop_, [this, alive = alive_] {
    if (*alive) retired_.clear();
  });
  if (leaving_) return finish(Done{});
  if (const Outcome trying = reconnect_.lost(why, [this] { reach(); }); !trying) finish(trying.error());
}

void WorkerProcess::finish(Outcome how) {
  if (ended_) return;
  ended_ = true;
  ++incarnations_;
  reconnect_.cancel();
  heartbeat_.cancel();
  join_timer_.cancel();
  if (step_executor_) step_executor_->abandon();
  if (over_) over_(std::move(how));
}

void WorkerProcess::job_received(const wire::JobDescription& job_description) {
  incarnation_->job_received = true;
  if (job_ == job_description.job && head_starts_ == job_description.head_starts) return prepared(WorkerSetup{}, job_description);
  log_("preparing data and model");
  preparing_.post([this, alive = alive_, incarnation = incarnations_, job_description] {
    auto setup = std::make_shared<Result<WorkerSetup>>(prepare_(job_description.job));
    boost::asio::post(event_loop_, [this, alive, incarnation, setup, job_description] {
      if (*alive && incarnation == incarnations_) prepared(std::move(*setup), job_description);
    });
  });
}

void WorkerProcess::prepared(Result<WorkerSetup> setup, const wire::JobDescription& job_description) {
  if (!setup) return finish(setup.error());
  if (job_ != job_description.job || head_starts_ != job_description.head_starts) {
    job_ = job_description.job;
    head_starts_ = job_description.head_starts;
    if (head_starts_.size() == setup->step_executor.layout.servers) store::place(setup->step_executor.layout, job_description.head_starts);
    epoch_samples_ = setup->step_executor.epoch_samples;
    step_executor_ = std::make_unique<StepExecutor>(event_loop_, std::move(setup->step_executor), static_cast<StepExecutorOwner&>(*this));
    setup_.emplace(std::move(*setup));
    link_.reset();
    if (setup_->node && setup_->cluster.nodes[setup_->node->value].device == cluster::DeviceKind::emulated)
      link_.emplace(event_loop_.get_executor(), setup_->cluster, *setup_->node);
  }
  if (std::max<std::size_t>(job_description.servers.size(), 1) != step_executor_->layout().servers)
    return lose(
        fmt::format("the chief names {} servers, its job has {}", job_description.servers.size(), step_executor_->layout().servers));
  if (link_) incarnation_->chief->reshape(link_->shape(0));
  incarnation_->server_addresses = job_description.servers;
  step_executor_->warm_up([this, incarnation = incarnations_](const std::optional<cluster::Affine>& batcher) {
    pace_ = batcher;
    if (!ended_ && incarnation == incarnations_) reach_servers();
  });
}

void WorkerProcess::reach_servers() {
  const std::size_t servers = std::max<std::size_t>(incarnation_->server_addresses.size(), 1);
  incarnation_->servers.resize(servers);
  incarnation_->servers_missing = servers - 1;
  if (incarnation_->servers_missing == 0) return begin();
  for (std::uint32_t s = 1; s < servers; ++s) reach_server(s);
}

void WorkerProcess::reach_server(std::uint32_t server) {
  const auto address = transport::parse_address(incarnation_->server_addresses[server]);
  if (!address) return lose(fmt::format("server {}: {}", server, address.error().message));
  transport::Options options = options_.transport;
  options.job = setup_->job;
  transport::connect(event_loop_, *address, options, [this, alive = alive_, incarnation = incarnations_, server](auto connection) {
    if (!*alive || ended_ || incarnation != incarnations_) return;
    if (!connection) return lose(fmt::format("server {}: {}", server, connection.error().message));
    auto& held = incarnation_->servers[server];
    held = unshaped(std::move(*connection), event_loop_, options_.transport);
    if (link_) held->reshape(link_->shape(server));
    held->start(*this);
    held->send(wire::JoinRequest{options_.node});  // so that it knows whose links to emulate
    if (--incarnation_->servers_missing == 0) begin();
  });
}

void WorkerProcess::begin() {
  protocol::WorkerOptions worker;
  worker.node = options_.node;
  worker.node_index = setup_->node_index;
  worker.max_batch = setup_->max_batch;
  worker.batch_multiple = std::max(step_executor_->batch_multiple(), 1U);
  if (pace_) {
    worker.samples_per_second = 1 / pace_->per_sample;
    worker.overhead_s = pace_->fixed;
  }
  worker.bf16_transfer = step_executor_->bf16_transfer();
  worker.shared_memory = shareable(step_executor_->layout().values);
  for (std::uint32_t s = 0; s < incarnation_->servers.size(); ++s)
    worker.shared_memory = worker.shared_memory && to_server(s)->supports_borrowing();
  for (const store::Slice& slice : step_executor_->layout().slices) worker.servers_of_slices.push_back(slice.server);
  worker.heartbeat = setup_->cluster.heartbeat;
  worker.patience = from_seconds(60);  // nothing is lost on a connection that stands; a chief may wait long for its quorum
  worker.start_early = step_executor_->streams();
  incarnation_->machine.emplace(std::move(worker));
  step_executor_->start_over();
  reconnect_.settled();
  tell(protocol::Started{});
  tick();
}

void WorkerProcess::tick() {
  heartbeat_.expires_after(setup_->cluster.heartbeat / 2);
  heartbeat_.async_wait([this, alive = alive_, incarnation = incarnations_](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_ || incarnation != incarnations_) return;
    tell(protocol::TimePassed{});
    if (!ended_ && incarnation == incarnations_) tick();
  });
}

// The machine and its answers ------------------------------------------------------------------------------------------------------------

void WorkerProcess::tell(const protocol::WorkerEvent& event) {
  if (!incarnation_ || !incarnation_->machine) return;
  protocol::WorkerActions actions;
  incarnation_->machine->step(clock_.now(), event, actions);
  const std::uint32_t incarnation = incarnations_;
  for (const auto& action : actions) {
    if (incarnation != incarnations_ || ended_) return;
    carry_out(action);
  }
  if (incarnation == incarnations_ && !ended_ && step_executor_->begins_next_step_early()) prefetch();
}

/// What is sure to come next can be begun before what is computed now has ended.
void WorkerProcess::prefetch() {
  const wire::Order* next = incarnation_->machine->next_step();
  if (next == nullptr || incarnation_->prefetched == next->step) return;
  const auto values = incarnation_->incoming_parameters.find({next->worker, next->parameters});
  if (values == incarnation_->incoming_parameters.end()) return;
  incarnation_->prefetched = next->step;
  step_executor_->prefetch(*next, values->second);
}

void WorkerProcess::carry_out(const protocol::WorkerAction& action) {
  std::visit(match{[&](const protocol::Send& a) { send(a); }, [&](const protocol::Compute& a) { compute(a); },
                   [&](const protocol::Abandon&) {
                     incarnation_->computing.reset();
                     step_executor_->abandon();
                   },
                   [&](const protocol::AwaitDevice&) {
                     step_executor_->when_free([this, incarnation = incarnations_] {
                       if (!ended_ && incarnation == incarnations_) tell(protocol::DeviceFree{});
                     });
                   },
                   [&](const protocol::Quit&) {
                     // Let the last words leave: close() sends what waits, closed() ends us.
                     leaving_ = true;
                     incarnation_->chief->close("done");
                   }},
             action);
}

transport::Connection* WorkerProcess::to_server(std::uint32_t server) const {
  return server == 0 ? incarnation_->chief.get() : incarnation_->servers[server].get();
}

void WorkerProcess::send(const protocol::Send& send) {
  const auto* ordered = std::get_if<wire::Push>(&send.message);
  if (ordered == nullptr) return incarnation_->chief->send(send.message);
  check(incarnation_->computing != nullptr, "what is pushed was computed");
  wire::Push push = *ordered;
  if (const std::uint8_t bits = incarnation_->computing->coded; bits > 0) push.bits = bits;
  const store::Slice& slice = step_executor_->layout()[push.slice];
  Leaving leaving{incarnation_->computing->out, nullptr};
  std::span<const std::byte> payload = std::as_const(*leaving.flat).bytes(slice.offset, slice.count);
  if (incarnation_->computing->coded > 0) {
    payload = payload.first(codec::encoded_bytes(slice.bits(push.bits), slice.count));
  } else if (slice.bits(push.bits) != fp32_bits || (incarnation_->push && incarnation_->push->has_residual(push.slice))) {
    leaving.coded = coded(push);
    payload = *leaving.coded;
  }
  leaving_slices_[next_ticket_] = std::move(leaving);
  to_server(send.to.id)
      ->send(transport::BulkMessage{push, payload, step_executor_->layout()[push.slice].priority, next_ticket_++, /*may_borrow=*/true});
}

std::shared_ptr<std::vector<std::byte>> WorkerProcess::coded(const wire::Push& push) {
  const Computation& computation = *incarnation_->computing;
  if (!incarnation_->push) incarnation_->push = std::make_unique<store::PushStream>(step_executor_->layout());
  if (incarnation_->pushing != push.step) {
    incarnation_->pushing = push.step;
    incarnation_->push->begin(step_executor_->local_steps() ? 0 : computation.samples,
                              computation.order.rate);  // a delta does not scale with the rate
  }
  auto bytes = std::make_shared<std::vector<std::byte>>();
  incarnation_->push->encode(push.slice, push.bits, std::as_const(*computation.out).floats(), *bytes);
  return bytes;
}

void WorkerProcess::compute(const protocol::Compute& order) {
  const std::pair key{order.order.worker, order.order.parameters};
  auto found = incarnation_->incoming_parameters.find(key);
  check(found != incarnation_->incoming_parameters.end(), "what is computed on has begun to arrive");
  auto computation = std::make_shared<Computation>();
  computation->order = order.order;
  computation->samples = order.order.lease.size();
  computation->values = found->second;
  computation->out = make_shareable_buffer(step_executor_->layout().values);
  computation->began = training_->now();
  forget_incoming_before(found);
  incarnation_->computing = computation;
  step_executor_->compute(computation, *training_);
}

void WorkerProcess::produced(const std::shared_ptr<Computation>& computation, SliceId slice) {
  if (incarnation_ && incarnation_->computing == computation) tell(protocol::Produced{computation->order.step, slice});
}

void WorkerProcess::computed(const std::shared_ptr<Computation>& computation, const store::StepReport& report, const StepTiming& time) {
  if (!incarnation_ || incarnation_->computing != computation) return;
  const double residual = report.loss.encoded ? report.loss.residual : incarnation_->push ? incarnation_->push->residual_ratio() : 0;
  tell(protocol::Computed{computation->order.step, report.loss.loss_sum, report.squared_norm, report.finite, time.compute,
                          static_cast<std::uint32_t>(report.samples), residual, report.max_batch, report.update_norm, time.stalled,
                          time.first_of_size});
  if (incarnation_ && incarnation_->computing == computation) incarnation_->computing.reset();  // else the next step is on the desk already
}

void WorkerProcess::failed(const std::string& what) {
  finish(world_failed(fmt::format("{}: computing a step failed: {}", options_.node, what)));
}

// What comes in --------------------------------------------------------------------------------------------------------------------------

void WorkerProcess::on_message(transport::Connection& from, wire::Message message) {
  if (!incarnation_ || !is_ours(from)) return;
  if (const auto why = objection(from, wire::Lane::control, message)) return from.close(*why);
  if (const auto* job_description = std::get_if<wire::JobDescription>(&message)) return job_received(*job_description);
  if (const auto* order = std::get_if<wire::Order>(&message)) training_.emplace(order->training);  // the chief's clock, less the way here
  tell(protocol::Arrived{message});
  // The servers must know who we are before they can send us anything.
  const auto* welcome = std::get_if<wire::Welcome>(&message);
  if (welcome == nullptr || !incarnation_ || !incarnation_->machine || incarnation_->machine->id() != welcome->worker ||
      incarnation_->attached == welcome->worker)
    return;
  incarnation_->attached = welcome->worker;
  for (std::uint32_t s = 0; s < incarnation_->servers.size(); ++s) to_server(s)->send(wire::Attach{welcome->worker, welcome->key});
}

void WorkerProcess::sent(transport::Connection&, std::uint64_t ticket) { leaving_slices_.erase(ticket); }

void WorkerProcess::closed(transport::Connection& connection, const Error& why) {
  if (ended_ || !incarnation_) return;
  if (leaving_) return finish(Done{});
  const bool chief = &connection == incarnation_->chief.get();
  if (why.next == Next::tell_user) return finish(why);
  lose(fmt::format("lost {}: {}", chief ? "the chief" : "a server", why.message));
}

}  // namespace motley::runtime
