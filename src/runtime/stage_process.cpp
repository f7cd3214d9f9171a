#include "runtime/stage_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "transport/connect.h"

namespace motley::runtime {

using pipeline::Part;

StageProcess::StageProcess(boost::asio::io_context& event_loop, StageProcessOptions options, PrepareStage prepare,
                           std::function<void(const std::string&)> log)
    : event_loop_(event_loop),
      options_(std::move(options)),
      prepare_(std::move(prepare)),
      log_(std::move(log)),
      reconnect_(event_loop, options_.reconnect, options_.node, to_text(options_.chief), log_),
      refusals_(event_loop, log_),
      heartbeat_(event_loop),
      alive_(std::make_shared<bool>(true)) {}

StageProcess::~StageProcess() { *alive_ = false; }

void StageProcess::start(std::function<void(Outcome)> over) {
  over_ = std::move(over);
  if (!wire::is_name(options_.node))
    return finish(bad_input(fmt::format("--node: found \"{}\", expected at most {} printable ASCII characters",
                                        wire::printable(options_.node, wire::longest_name), wire::longest_name)));
  reach();
}

void StageProcess::finish(Outcome how) {
  if (ended_) return;
  ended_ = true;
  ++attempts_;
  reconnect_.cancel();
  heartbeat_.cancel();
  if (step_executor_) step_executor_->stop();
  if (over_) over_(std::move(how));
}

// Reaching the conductor -----------------------------------------------------------------------------------------------------------------

void StageProcess::reach() {
  if (ended_) return;
  transport::Options options = options_.transport;
  options.job = setup_ ? setup_->job : transport::any_job;
  transport::connect(event_loop_, options_.chief, options, [this, alive = alive_, attempt = ++attempts_](auto connection) {
    if (*alive && !ended_ && attempt == attempts_) reached(std::move(connection));
  });
}

void StageProcess::reached(Result<std::unique_ptr<transport::Connection>> connection) {
  if (!connection) return lose(connection.error());
  reconnect_.proven();
  chief_ = std::make_unique<transport::Shaped>(std::move(*connection), event_loop_.get_executor(), transport::Shape{}, options_.transport);
  job_received_ = registered_ = false;
  chief_->start(*this);
  chief_->send(wire::JoinRequest{options_.node});
}

void StageProcess::lose(const Error& why) {
  if (ended_) return;
  ++attempts_;
  heartbeat_.cancel();
  drop_incarnation();
  drop_neighbours_before(std::numeric_limits<std::uint32_t>::max());  // another conductor counts its generations anew
  if (chief_) retire(std::move(chief_));
  if (const Outcome trying = reconnect_.lost(why, [this] { reach(); }); !trying) finish(trying.error());
}

void StageProcess::job_received(const wire::JobDescription& job_description) {
  job_received_ = true;
  stay_known();
  if (job_ == job_description.job) return prepared(StageSetup{}, job_description.job);
  log_("preparing data and model");
  preparing_.post([this, alive = alive_, attempt = attempts_, job = job_description.job] {
    auto setup = std::make_shared<Result<StageSetup>>(prepare_(job));
    boost::asio::post(event_loop_, [this, alive, attempt, setup, job] {
      if (*alive && !ended_ && attempt == attempts_) prepared(std::move(*setup), job);
    });
  });
}

void StageProcess::prepared(Result<StageSetup> setup, const std::string& job) {
  if (!setup) return finish(setup.error());
  if (job_ != job) {
    job_ = job;
    setup_.emplace(std::move(*setup));
    step_executor_ = std::make_unique<StageExecutor>(event_loop_, setup_->emulated, static_cast<StageExecutorOwner&>(*this));
    transport::Options options = options_.transport;
    options.job = setup_->job;
    auto acceptor = transport::listen(event_loop_, options_.listen, options, *this);
    if (!acceptor) return finish(acceptor.error());
    acceptor_ = std::move(*acceptor);
  }
  // A device that has hung is of no use to anybody before it moves again.
  step_executor_->when_free([this, attempt = attempts_] {
    if (ended_ || attempt != attempts_) return;
    registered_ = true;
    chief_->send(wire::StageHello{options_.node, options_.reach.empty() ? to_text(acceptor_->address()) : options_.reach});
    tick();
  });
}

void StageProcess::tick() {
  heartbeat_.expires_after(setup_->cluster.heartbeat / 2);
  heartbeat_.async_wait([this, alive = alive_, attempt = attempts_](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_ || attempt != attempts_ || !chief_) return;
    const StageExecutor::Status status = step_executor_->status();
    chief_->send(wire::StageStatus{incarnation_ ? incarnation_->assignment.generation : 0, status.done, status.busy});
    expel_idle_neighbours();
    tick();
  });
}

// Being a stage --------------------------------------------------------------------------------------------------------------------------

/// Destroyed when nobody is inside it; what it reads and writes lives as long.
void StageProcess::retire(ConnectionPointer connection) {
  retired_.push_back(std::move(connection));
  boost::asio::post(event_loop_, [this, alive = alive_] {
    if (!*alive) return;
    for (ConnectionPointer& old : retired_) {
      const transport::Connection* name = old.get();
      old.reset();
      landing_buffers_.erase(name);
      leaving_.erase(name);
    }
    retired_.clear();
  });
}

void StageProcess::drop_incarnation() {
  ++incarnations_;
  if (step_executor_) step_executor_->stop();
  incarnation_.reset();
  continues_.reset();
}

/// Those whom we reached, and those who came for a generation before this one. Who has not said yet what for may stay.
void StageProcess::drop_neighbours_before(std::uint32_t generation) {
  for (auto it = neighbours_.begin(); it != neighbours_.end();) {
    const Neighbour& neighbour = it->second;
    const bool stays = neighbour.came && (!neighbour.reported || neighbour.reported->generation >= generation);
    if (!stays) retire(std::move(it->second.connection));
    it = stays ? std::next(it) : neighbours_.erase(it);
  }
}

/// The neighbour may have died: the conductor hears of that too, and first of all from the neighbour's own silence.
void StageProcess::part(const std::string& why) {
  if (chief_ && incarnation_) chief_->send(wire::PeerLost{incarnation_->assignment.generation, why});
}

void StageProcess::assign(const wire::AssignStage& assignment) {
  drop_incarnation();
  drop_neighbours_before(assignment.generation);
  incarnation_ = Incarnation{};
  Incarnation& incarnation = *incarnation_;
  incarnation.assignment = assignment;
  for (const wire::Section& section : assignment.sections) incarnation.cut.push_back({section.first, section.last, section.node});
  incarnation.schedule = {assignment.schedule, {}, 0};
  incarnation.place = setup_->place(incarnation.cut, assignment.stage);
  incarnation.part = std::make_shared<store::StagePart>();
  incarnation.part->values.resize(incarnation.place.values);
  incarnation.missing = incarnation.place.values;
  incarnation.part->updates = assignment.from;
  if (assignment.moments) {
    incarnation.part->first.resize(incarnation.place.parameters);
    incarnation.missing += incarnation.place.parameters;
    if (setup_->replica.optimizer.kind == OptimizerKind::adamw) {
      incarnation.part->second.resize(incarnation.place.parameters);
      incarnation.missing += incarnation.place.parameters;
    }
  }
  incarnation.allowed = assignment.allowed;
  incarnation.state_submitted = assignment.from;
  incarnation.next_input = incarnation.next_gradient = assignment.from * assignment.schedule.micro_batches;
  training_.emplace(assignment.training);
  log_(fmt::format("stage {} of {}: blocks {} to {}, from mini-batch {}", assignment.stage + 1, incarnation.cut.size(),
                   incarnation.cut[assignment.stage].first, incarnation.cut[assignment.stage].last - 1, assignment.from));
  chief_->send(wire::StageAssigned{assignment.generation});
  if (!is_last()) peer_hello();
  // The stage before may have come already.
  for (auto& [connection, neighbour] : neighbours_) {
    if (!neighbour.came || !neighbour.reported || neighbour.sent_away || neighbour.reported->generation != assignment.generation) continue;
    if (is_before(*neighbour.reported))
      take_before(*neighbour.connection);
    else
      expel(*neighbour.connection, "it is not the stage before this one");
  }
  begin_when_all_is_here();
}

void StageProcess::begin_when_all_is_here() {
  Incarnation& incarnation = *incarnation_;
  if (incarnation.started || incarnation.missing > 0 || (incarnation.assignment.stage > 0 && incarnation.before == nullptr) ||
      (!is_last() && incarnation.after == nullptr))
    return;
  incarnation.started = true;
  StageConfig config;
  store::StageReplicaOptions replica = setup_->replica;
  replica.parameters = incarnation.place.parameters;
  replica.micro_batches = incarnation.schedule.micro_batches;
  replica.reads_samples = incarnation.assignment.stage == 0 || is_last();
  replica.predicts = incarnation.schedule.predicts;
  replica.clips = incarnation.schedule.clips;
  config.make = [make = setup_->make, cut = incarnation.cut, stage = incarnation.assignment.stage, replica,
                 part = std::move(incarnation.part)] {
    auto source = make(cut, stage);
    if (!source) throw std::runtime_error(source.error().message);
    return std::make_unique<store::StageReplica>(replica, std::move(*source), std::move(*part));
  };
  if (setup_->emulated) config.parts_s = incarnation.assignment.parts_s;
  config.kept_bytes = incarnation.assignment.kept_bytes;
  config.clock = *training_;
  step_executor_->configure(std::move(config));
  const std::uint64_t all = std::min(replica.total_samples, setup_->mini_batches * replica.samples);
  const Batching batching{all, replica.samples, replica.micro_batches};
  incarnation.machine.emplace(protocol::StageOptions{incarnation.schedule, incarnation.assignment.stage,
                                                     static_cast<std::uint32_t>(incarnation.cut.size()), incarnation.assignment.from,
                                                     incarnation.assignment.from, batching.micro_batches()});
  tell(protocol::StageStarted{});
  tell(protocol::MoreMiniBatches{incarnation.allowed});
  tell_of_what_is_here();
}

double StageProcess::rate(std::uint64_t mini) const {
  return setup_->rates->rate(mini * setup_->replica.samples) *
         pipeline::softening(incarnation_->schedule, incarnation_->assignment.stage, mini, setup_->mini_batches);
}

void StageProcess::tell(const protocol::StageEvent& event) {
  if (!incarnation_ || !incarnation_->machine) return;
  const std::uint32_t generation = incarnation_->assignment.generation;
  protocol::StageActions actions;
  incarnation_->machine->step(event, actions);
  for (const auto& action : actions) {
    if (ended_ || !incarnation_ || incarnation_->assignment.generation != generation) return;
    carry_out(action);
  }
}

void StageProcess::carry_out(const protocol::StageAction& action) {
  std::visit(
      match{[&](const protocol::RunPart& a) { run(a); }, [&](const protocol::ShipOutput& a) { ship(a.micro, false); },
            [&](const protocol::ShipGradient& a) { ship(a.micro, true); }, [&](const protocol::CommitMiniBatch& a) { commit(a.mini); }},
      action);
}

void StageProcess::run(const protocol::RunPart& part) {
  Incarnation& incarnation = *incarnation_;
  StageWork work;
  work.part = part;
  work.began = continues_ ? *continues_ : training_->now();
  if (part.part == Part::forward) {
    incarnation.versions[part.micro] = incarnation.machine->committed();
    work.rate = rate(part.micro / incarnation.schedule.micro_batches);
  }
  auto& from = part.part == Part::forward ? incarnation.inputs : incarnation.gradients;
  if (part.part != Part::weight)
    if (auto found = from.extract(part.micro); !found.empty()) work.in = std::move(*found.mapped().activation);
  step_executor_->run(std::move(work));
}

void StageProcess::done(StageWork& work) {
  if (!incarnation_ || !incarnation_->machine) return;
  Incarnation& incarnation = *incarnation_;
  const std::uint64_t micro = work.part.micro;
  incarnation.did.push_back({static_cast<std::uint8_t>(work.part.part), micro, incarnation.versions[micro], work.part.late,
                             work.began.time_since_epoch(), work.ended.time_since_epoch()});
  incarnation.finite = incarnation.finite && work.finite;
  incarnation.stash_bytes = std::max(incarnation.stash_bytes, work.stash_bytes);
  if (work.part.part == Part::forward) incarnation.outgoing[micro] = std::move(work.out);
  if (work.part.part == Part::input) incarnation.returning[micro] = std::move(work.out);
  if (work.part.part == Part::weight) incarnation.versions.erase(micro);
  if (setup_->emulated) continues_ = work.ended;
  tell(protocol::PartDone{work.part.part, micro});
  continues_.reset();
}

void StageProcess::commit(std::uint64_t mini) {
  Incarnation& incarnation = *incarnation_;
  step_executor_->commit(mini, rate(mini));
  chief_->send(wire::Committed{incarnation.assignment.generation, incarnation.assignment.stage, mini + 1, incarnation.finite,
                               incarnation.stash_bytes, std::move(incarnation.did)});
  incarnation.did.clear();
  const bool due = (mini + 1) % setup_->snapshot_every == 0 || mini + 1 == setup_->mini_batches;
  if (due) {
    incarnation.state_submitted = mini + 1;
    step_executor_->submit_state(mini + 1);
  }
  submit_state_if_due();
}

void StageProcess::submit_state_if_due() {
  Incarnation& incarnation = *incarnation_;
  if (!incarnation.submit_state || !incarnation.machine || incarnation.machine->committed() != incarnation.allowed ||
      incarnation.state_submitted >= incarnation.allowed)
    return;
  incarnation.state_submitted = incarnation.allowed;
  step_executor_->submit_state(incarnation.allowed);
}

void StageProcess::state_submitted(std::uint64_t mini_batches, std::shared_ptr<const store::StagePart> part) {
  if (!incarnation_ || !chief_) return;
  const std::size_t piece = std::max<std::size_t>(1, options_.transport.slice_bytes / sizeof(float));
  const auto send = [&](const std::vector<float>& numbers, wire::StateKind state_kind) {
    for (std::size_t at = 0; at < numbers.size(); at += piece) {
      const auto run = std::span(numbers).subspan(at, std::min(piece, numbers.size() - at));
      leaving_[chief_.get()][next_ticket_] = part;
      chief_->send(transport::BulkMessage{
          wire::StageSlice{incarnation_->assignment.generation, incarnation_->assignment.stage, mini_batches, state_kind, at},
          std::as_bytes(run), 0, next_ticket_++});
    }
  };
  send(part->values, wire::StateKind::values);
  send(part->first, wire::StateKind::first);
  send(part->second, wire::StateKind::second);
}

void StageProcess::failed(const std::string& what) {
  finish(world_failed(fmt::format("{}: computing a part failed: {}", options_.node, what)));
}

// What else comes in ---------------------------------------------------------------------------------------------------------------------

void StageProcess::on_message(transport::Connection& from, wire::Message message) {
  if (ended_) return;
  if (const auto why = objection(from, wire::Lane::control, message)) return expel(from, *why);
  std::visit(match{[&](const wire::PeerHello& m) { peer_connected(from, m); }, [&](const wire::JobDescription& m) { job_received(m); },
                   [&](const wire::AssignStage& m) { assign(m); }, [&](const wire::Stop&) { finish(Done{}); },
                   [&](const wire::StageHello&) { reconnect_.settled(); },
                   [&](const wire::Allow& m) {
                     if (m.generation != incarnation_->assignment.generation) return;  // of an earlier one
                     incarnation_->allowed = m.allowed;
                     incarnation_->submit_state = m.submit_state;
                     tell(protocol::MoreMiniBatches{m.allowed});
                     if (incarnation_ && incarnation_->started) submit_state_if_due();
                   },
                   [](const auto&) {}},  // refused above
             message);
}

void StageProcess::sent(transport::Connection& to, std::uint64_t ticket) {
  if (const auto found = leaving_.find(&to); found != leaving_.end()) found->second.erase(ticket);
}

void StageProcess::closed(transport::Connection& connection, const Error& why) {
  if (ended_) return;
  if (&connection == chief_.get()) return lose(fmt::format("lost the conductor: {}", why.message));
  const auto found = neighbours_.find(&connection);
  if (found == neighbours_.end()) return;
  retire(std::move(found->second.connection));
  neighbours_.erase(found);
  if (!incarnation_ || (incarnation_->before != &connection && incarnation_->after != &connection)) return;
  if (incarnation_->before == &connection) incarnation_->before = nullptr;
  if (incarnation_->after == &connection) incarnation_->after = nullptr;
  part(why.message);
}

void StageProcess::accepted(std::unique_ptr<transport::Connection> connection) {
  auto held =
      std::make_unique<transport::Shaped>(std::move(connection), event_loop_.get_executor(), transport::Shape{}, options_.transport);
  transport::Shaped& shaped = *held;
  neighbours_[&shaped] = {std::move(held), true, std::nullopt, clock_.now()};
  shaped.start(*this);
}

void StageProcess::refused(const std::string& address, const std::string& reason) {
  refusals_.say(fmt::format("refused {}: {}", address, reason));
}

}  // namespace motley::runtime
