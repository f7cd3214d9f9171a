#include "runtime/worker_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/buffer.h"
#include "wire/frame.h"

namespace motley::runtime {

WorkerProcess::WorkerProcess(boost::asio::io_context& event_loop, const WorkerProcessOptions& options, PrepareWorker prepare,
                             const Log& log)
    : event_loop_(event_loop),
      node_(options.node),
      transport_(options.transport),
      session_(event_loop, {options.node, options.chief, options.transport, options.join_heartbeat, options.reconnect}, *this, *this, log),
      retired_(event_loop),
      preparation_(event_loop, std::move(prepare), log) {}

void WorkerProcess::start(std::function<void(Outcome)> over) {
  over_ = std::move(over);
  session_.start();
}

void WorkerProcess::leave() {
  if (session_.is_over() || leaving_) return;
  leaving_ = true;
  if (training_)
    training_->leave();
  else
    session_.finish(Done{});
}

/// close() sends what waits first; closed() then ends the session.
void WorkerProcess::quit() {
  leaving_ = true;
  session_.chief()->close("done");
}

// From the job description to training ---------------------------------------------------------------------------------------------------

void WorkerProcess::job_received(const wire::JobDescription& description) {
  session_.job_received();
  if (job_ && job_->is(description)) return warm_up(description.servers);
  preparation_.start(description.job,
                     session_.bind([this, description](Result<WorkerSetup> setup) { prepared(std::move(setup), description); }));
}

void WorkerProcess::prepared(Result<WorkerSetup> setup, const wire::JobDescription& description) {
  if (!setup) return session_.finish(setup.error());
  StepExecutorSetup executor = std::move(setup->step_executor);
  if (description.head_starts.size() == executor.layout.servers) store::place(executor.layout, description.head_starts);
  transport_.job = setup->job;
  session_.use_job(setup->job);
  std::optional<WorkerLink> link;
  if (setup->node && setup->cluster.nodes[setup->node->value].device == cluster::DeviceKind::emulated)
    link.emplace(event_loop_.get_executor(), setup->cluster, *setup->node);
  const std::uint64_t epoch_samples = executor.epoch_samples;
  job_.reset();  // the device is free before the next executor uses it
  job_.emplace(Job{.text = description.job,
                   .head_starts = description.head_starts,
                   .setup = std::move(*setup),
                   .epoch_samples = epoch_samples,
                   .executor = std::make_unique<StepExecutor>(event_loop_, std::move(executor), static_cast<StepExecutorOwner&>(*this)),
                   .link = std::move(link)});
  warm_up(description.servers);
}

void WorkerProcess::warm_up(const std::vector<std::string>& servers) {
  const std::size_t expected = job_->executor->layout().servers;
  if (std::max<std::size_t>(servers.size(), 1) != expected)
    return session_.lose(fmt::format("the chief names {} servers, its job has {}", servers.size(), expected));
  if (job_->link) session_.chief()->transport().reshape(job_->link->shape(0));
  job_->executor->warm_up(
      [this, next = session_.bind([this, servers] { connect_servers(servers); })](const std::optional<cluster::Affine>& cost) mutable {
        job_->cost = cost;
        next();
      });
}

void WorkerProcess::connect_servers(const std::vector<std::string>& addresses) {
  servers_ =
      std::make_unique<ServerConnections>(event_loop_, ServerConnections::Options{node_, transport_, job_->link ? &*job_->link : nullptr},
                                          *session_.chief(), static_cast<PeerOwner&>(*this));
  servers_->connect(addresses, session_.bind([this] { begin_training(); }),
                    session_.bind([this](const std::string& why) { session_.lose(why); }));
}

void WorkerProcess::begin_training() {
  training_ = std::make_unique<WorkerTraining>(event_loop_, WorkerTraining::Options{machine_options(), job_->epoch_samples},
                                               *job_->executor, *servers_, static_cast<WorkerTrainingOwner&>(*this));
  session_.settled();
  training_->start();
}

protocol::WorkerOptions WorkerProcess::machine_options() const {
  const StepExecutor& executor = *job_->executor;
  protocol::WorkerOptions options;
  options.node = node_;
  options.node_index = job_->setup.node_index;
  options.profile.max_batch = job_->setup.max_batch;
  options.profile.batch_multiple = std::max(executor.batch_multiple(), 1U);
  if (job_->cost) options.profile.cost = *job_->cost;
  options.profile.bytes_per_value = executor.bf16_transfer() ? 2 : 4;
  if (shareable(executor.layout().values) && servers_->support_borrowing()) options.profile.transfer_s_per_byte = 0;
  for (const store::Slice& slice : executor.layout().slices) options.servers_of_slices.push_back(slice.server);
  options.heartbeat = job_->setup.cluster.heartbeat;
  options.patience = from_seconds(60);  // a connection loses no message, and a chief may wait long for its quorum
  options.start_early = executor.streams();
  return options;
}

// The end of a connection ----------------------------------------------------------------------------------------------------------------

void WorkerProcess::disconnected() {
  if (job_) job_->executor->abandon();
  if (training_) training_->stop();
  if (servers_) servers_->retire();
  retired_.add(std::move(training_));
  retired_.add(std::move(servers_));
}

void WorkerProcess::ended(const Outcome& how) {
  if (job_) job_->executor->abandon();
  if (training_) training_->stop();
  if (servers_) servers_->retire();
  if (over_) over_(how);
}

void WorkerProcess::closed(PeerConnection& peer, const Error& why) {
  if (leaving_) return session_.finish(Done{});
  if (why.next == Next::tell_user) return session_.finish(why);
  session_.lose(fmt::format("lost {}: {}", session_.is_chief(peer) ? "the chief" : "a server", why.message));
}

void WorkerProcess::lose(const std::string& why) { leaving_ ? session_.finish(Done{}) : session_.lose(why); }

void WorkerProcess::join_heartbeat() {
  if (training_ && training_->is_member()) return;
  session_.chief()->send(wire::Heartbeat{wire::no_worker});
  if (servers_) servers_->send_beside_chief(wire::Heartbeat{wire::no_worker});
}

// Deliveries of chief, servers and executor ----------------------------------------------------------------------------------------------

wire::Objection WorkerProcess::objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const {
  const bool chief = session_.is_chief(from);
  if (auto why = wire::objection(chief ? wire::Sender::workers_chief : wire::Sender::workers_server, lane, message)) return why;
  if (auto why = session_.objection_to_order(message)) return why;
  if (!session_.has_job() || std::holds_alternative<wire::Stop>(message)) return {};
  if (!training_) return fmt::format("its {} comes before our Hello", wire::name_of(message));
  return training_->objection(from, message);
}

void WorkerProcess::on_message(PeerConnection&, wire::Message message) {
  if (const auto* description = std::get_if<wire::JobDescription>(&message)) return job_received(*description);
  if (training_) training_->on_message(message);
}

std::span<std::byte> WorkerProcess::receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) {
  return training_->receive_buffer(from, std::get<wire::Pulled>(head), bytes);
}

void WorkerProcess::received(PeerConnection& from, const wire::Message& head) { training_->received(from, std::get<wire::Pulled>(head)); }

bool WorkerProcess::accept_in_place(PeerConnection&, const wire::Message& head, std::span<const std::byte> payload,
                                    const transport::BorrowedMemory& borrow) {
  return training_->accept_in_place(std::get<wire::Pulled>(head), payload, borrow);
}

void WorkerProcess::produced(const std::shared_ptr<Computation>& computation, SliceId slice) {
  if (training_) training_->produced(*computation, slice);
}

void WorkerProcess::computed(const std::shared_ptr<Computation>& computation, const StepReport& report) {
  if (training_) training_->computed(*computation, report);
}

void WorkerProcess::failed(const std::string& what) {
  session_.finish(world_failed(fmt::format("{}: computing a step failed: {}", node_, what)));
}

}  // namespace motley::runtime
