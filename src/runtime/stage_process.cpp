#include "runtime/stage_process.h"

#include <fmt/format.h>

#include <utility>

#include "base/match.h"
#include "transport/connect.h"
#include "wire/frame.h"

namespace motley::runtime {

StageProcess::StageProcess(boost::asio::io_context& event_loop, StageProcessOptions options, PrepareStage prepare, const Log& log)
    : event_loop_(event_loop),
      options_(std::move(options)),
      log_(log),
      expulsions_(event_loop, log),
      session_(event_loop, {options_.node, options_.chief, options_.transport, options_.join_heartbeat, options_.reconnect}, *this, *this,
               log),
      status_timer_(event_loop),
      neighbours_(event_loop, options_.transport, *this, expulsions_),
      preparation_(event_loop, std::move(prepare), log) {}

void StageProcess::start(std::function<void(Outcome)> over) {
  over_ = std::move(over);
  session_.start();
}

// The session ----------------------------------------------------------------------------------------------------------------------------

void StageProcess::job_received(const wire::JobDescription& description) {
  session_.job_received();
  if (job_ == description.job) return introduce_when_free();
  preparation_.start(description.job,
                     session_.bind([this, job = description.job](Result<StageSetup> setup) { prepared(std::move(setup), job); }));
}

void StageProcess::prepared(Result<StageSetup> setup, const std::string& job) {
  if (!setup) return session_.finish(setup.error());
  job_ = job;
  setup_.emplace(std::move(*setup));
  executor_ = std::make_unique<StageExecutor>(event_loop_, setup_->emulated, static_cast<StageExecutorOwner&>(*this));
  session_.use_job(setup_->job);
  options_.transport.job = setup_->job;
  auto acceptor = transport::listen(event_loop_, options_.listen, options_.transport, *this);
  if (!acceptor) return session_.finish(acceptor.error());
  acceptor_ = std::move(*acceptor);
  introduce_when_free();
}

/// A device that hangs cannot begin a stage: the chief is told of this process when the device is free.
void StageProcess::introduce_when_free() {
  executor_->when_free(session_.bind([this] {
    introduced_ = true;
    session_.chief()->send(wire::StageHello{options_.node, options_.reach.empty() ? to_text(acceptor_->address()) : options_.reach});
    status_timer_.start(setup_->cluster.heartbeat / 2, [this] { send_status(); });
  }));
}

void StageProcess::send_status() {
  const StageExecutor::Status status = executor_->status();
  session_.chief()->send(wire::StageStatus{training_ ? training_->assignment().generation() : 0, status.done, status.busy});
  neighbours_.expel_idle(options_.join_deadline, training_ ? training_->before().peer() : nullptr);
}

void StageProcess::join_heartbeat() {
  if (!introduced_) session_.chief()->send(wire::Heartbeat{wire::no_worker});
}

/// Another chief counts its generations anew.
void StageProcess::disconnected() {
  status_timer_.stop();
  introduced_ = false;
  drop_assignment();
  neighbours_.drop_all();
}

void StageProcess::ended(const Outcome& how) {
  status_timer_.stop();
  assignment_scope_.cancel();
  neighbours_.stop();
  if (executor_) executor_->stop();
  if (over_) over_(how);
}

// Assignments and neighbours -------------------------------------------------------------------------------------------------------------

void StageProcess::drop_assignment() {
  assignment_scope_.cancel();
  training_.reset();
}

void StageProcess::assign(const wire::AssignStage& message) {
  drop_assignment();
  neighbours_.drop_before(message.generation);
  training_ = std::make_unique<StageTraining>(message, *setup_, options_.transport.slice_bytes, *executor_, *session_.chief());
  const StageAssignment& assignment = training_->assignment();
  log_(fmt::format("stage {} of {}: blocks {} to {}, from mini-batch {}", message.stage + 1, assignment.cut.size(),
                   assignment.cut[message.stage].first, assignment.cut[message.stage].last - 1, message.from));
  session_.chief()->send(wire::StageAssigned{message.generation});
  if (!assignment.is_last()) connect_to_next();
  // The stage before may have connected already.
  for (const auto& [name, connection] : neighbours_.all()) {
    if (!connection.accepted || !connection.hello || connection.peer->is_closing() || !is_of_assignment(*connection.hello)) continue;
    if (is_before(*connection.hello))
      accept_before(*connection.peer);
    else
      neighbours_.expel(*connection.peer, "it is not the stage before this one");
  }
  training_->begin_if_ready();
}

void StageProcess::connect_to_next() {
  const wire::AssignStage& message = training_->assignment().message;
  const auto address = transport::parse_address(message.next);
  if (!address) return report_lost_neighbour(address.error().message);
  transport::connect(event_loop_, *address, options_.transport,
                     assignment_scope_.bind([this, hello = wire::PeerHello{message.generation, message.stage, message.next_key}](
                                                Result<std::unique_ptr<transport::Connection>> connection) {
                       if (!connection) return report_lost_neighbour(connection.error().message);
                       PeerConnection& next = neighbours_.add(std::move(*connection), NeighbourConnections::Opened::connected);
                       shape(next, hello.stage + 1);
                       next.send(hello);
                     }));
}

void StageProcess::greeted(PeerConnection& from, const wire::PeerHello& hello) {
  neighbours_.identify(from, hello);
  if (!is_of_assignment(hello)) return;
  if (neighbours_.find(from)->accepted)
    accept_before(from);
  else
    training_->after().connect(from);
  training_->begin_if_ready();
}

void StageProcess::accept_before(PeerConnection& peer) {
  const wire::AssignStage& message = training_->assignment().message;
  training_->before().connect(peer);
  shape(peer, message.stage - 1);
  peer.send(wire::PeerHello{message.generation, message.stage, message.before_key});
}

/// As the link between the two nodes is described, where this one is emulated.
void StageProcess::shape(PeerConnection& peer, std::uint32_t to_stage) const {
  if (!setup_->emulated) return;
  const StageAssignment& assignment = training_->assignment();
  const pipeline::DeviceLink& link = setup_->problem.links[assignment.cut[assignment.stage()].device][assignment.cut[to_stage].device];
  peer.transport().reshape({.up = std::make_shared<transport::Pipe>(event_loop_.get_executor(), link.bytes_per_second),
                            .beyond = {},
                            .latency = from_seconds(link.latency_s),
                            .in = {},
                            .peer_bytes_per_second = 0});
}

/// The neighbour may have died. The chief then learns it from the neighbour's silence too.
void StageProcess::report_lost_neighbour(const std::string& why) {
  if (session_.chief() != nullptr && training_) session_.chief()->send(wire::PeerLost{training_->assignment().generation(), why});
}

void StageProcess::accepted(std::unique_ptr<transport::Connection> connection) {
  if (!session_.is_over()) neighbours_.add(std::move(connection), NeighbourConnections::Opened::accepted);
}

void StageProcess::closed(PeerConnection& peer, const Error& why) {
  if (session_.is_chief(peer)) return session_.lose(fmt::format("lost the chief: {}", why.message));
  neighbours_.remove(peer);
  if (training_ && training_->disconnect(peer)) report_lost_neighbour(why.message);
}

// Messages -------------------------------------------------------------------------------------------------------------------------------

void StageProcess::on_message(PeerConnection& from, wire::Message message) {
  std::visit(match{[&](const wire::PeerHello& m) { greeted(from, m); }, [&](const wire::JobDescription& m) { job_received(m); },
                   [&](const wire::AssignStage& m) { assign(m); }, [&](const wire::Stop&) { session_.finish(Done{}); },
                   [&](const wire::StageHello&) { session_.settled(); }, [&](const wire::Allow& m) { training_->on_message(m); },
                   [](const auto&) {}},  // objection() has refused all others
             message);
}

std::span<std::byte> StageProcess::receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) {
  return training_ ? training_->receive_buffer(from, head, bytes) : std::span<std::byte>{};
}

void StageProcess::received(PeerConnection& from, const wire::Message& head) {
  if (training_) training_->received(from, head);
}

void StageProcess::done(StageWork& work) {
  if (training_) training_->done(work);
}

void StageProcess::state_submitted(std::uint64_t mini_batches, std::shared_ptr<const store::StagePart> part) {
  if (training_) training_->state_submitted(mini_batches, part);
}

void StageProcess::failed(const std::string& what) {
  session_.finish(world_failed(fmt::format("{}: computing a part failed: {}", options_.node, what)));
}

}  // namespace motley::runtime
