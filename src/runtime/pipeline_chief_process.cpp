#include "runtime/pipeline_chief_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "runtime/pipeline_chief_log.h"
#include "runtime/pipeline_chief_validation.h"
#include "runtime/random_key.h"

namespace motley::runtime {
namespace {

constexpr std::chrono::milliseconds stage_shutdown_time{500};  // for a Stop to arrive at the stages

KeptModelsOptions kept_models_options(PipelineChiefProcessOptions& options) {
  return {.initial_model = std::move(options.model),
          .second = options.second,
          .first_mini = options.pipeline_chief.first_mini,
          .mini_batches = options.pipeline_chief.mini_batches,
          .samples = options.samples,
          .total_samples = options.total_samples,
          .evaluate_every = options.evaluate_every,
          .checkpoint_every = options.checkpoint_every};
}

}  // namespace

PipelineChiefProcess::PipelineChiefProcess(boost::asio::io_context& event_loop, PipelineChiefProcessOptions options,
                                           PipelineChiefHooks hooks)
    : options_(std::move(options)),
      hooks_(std::move(hooks)),
      pauses_(options_.cluster.heartbeat, std::min(options_.cluster.silence_deadline, options_.cluster.step_limit)),
      pipeline_chief_(options_.pipeline_chief),
      trace_(options_.trained_before, options_.pipeline_chief.first_mini, hooks_.on_event),
      expulsions_(event_loop, hooks_.log),
      peers_(event_loop),
      listener_(event_loop, options_.transport, *this, expulsions_,
                [this](std::unique_ptr<PeerConnection> connection) {
                  if (!ended_) peers_.add(std::move(connection), clock_.now());
                }),
      ticker_(event_loop),
      shutdown_(event_loop, clock_,
                [this] {
                  if (over_) over_(*outcome_);
                }),
      disconnections_(event_loop),
      models_(event_loop, kept_models_options(options_), hooks_, *this) {}

Outcome PipelineChiefProcess::start(std::function<void(Result<protocol::TrainingOutcome>)> over) {
  over_ = std::move(over);
  if (const Outcome listening = listener_.listen(options_.listen); !listening) return listening.error();
  ticker_.start(options_.cluster.heartbeat / 2, [this] { tick(); });
  return Done{};
}

void PipelineChiefProcess::tick() {
  if (ended_ || outcome_) return ticker_.stop();
  note_driver_alive();
  close_silent();
  if (!trace_.started() && layout_.generation == 0 && clock_.now() > Instant{options_.start_deadline}) tell(protocol::StartTimeout{});
  if (!blocked_since_ || clock_.now() - *blocked_since_ <= options_.empty_deadline) return;
  hooks_.log(fmt::format("too few nodes to hold the model for {:.0f} s: giving up; the last whole model is saved, go on with --resume",
                         seconds(options_.empty_deadline)));
  models_.save();
  end_for(protocol::EndReason::nobody_left);
}

void PipelineChiefProcess::close_silent() {
  const Instant now = clock_.now();
  for (auto& [id, peer] : peers_) {
    const Duration silent = now - peer.last_contact;
    if (peer.device && silent > options_.cluster.silence_deadline) peer.connection->transport().abandon("silent for too long");
    if (!peer.device && silent > options_.join_deadline)
      expulsions_.expel(*peer.connection, Expulsions::Peer::unidentified, peer.name,
                        fmt::format("it is no node of the pipeline and has sent nothing for {:.0f} s", seconds(options_.join_deadline)));
  }
}

/// If the event loop did not run for so long that a peer could be expelled for it, messages of the peers wait unread.
void PipelineChiefProcess::note_driver_alive() {
  const Duration missed = pauses_.run(clock_.now());
  if (missed == Duration{0}) return;
  peers_.excuse(missed);
  tell(protocol::DriverPaused{missed});
}

// Connections ----------------------------------------------------------------------------------------------------------------------------

wire::Objection PipelineChiefProcess::objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const {
  const Instant now = clock_.now();
  return runtime::objection(peers_.at(from), lane, message, {options_.cluster, layout_, peers_, now - pauses_.paused(now)});
}

void PipelineChiefProcess::expel(PeerConnection& connection, const std::string& why) {
  const StagePeer& peer = peers_.at(connection);
  expulsions_.expel(connection, peer.device ? Expulsions::Peer::identified : Expulsions::Peer::unidentified, peer.name, why);
}

void PipelineChiefProcess::on_message(PeerConnection& from, wire::Message message) {
  note_driver_alive();
  StagePeer& peer = peers_.at(from);
  peer.last_contact = clock_.now();
  std::visit(
      match{[&](const wire::JoinRequest& m) {
              peer.role = wire::Sender::stage;
              peer.name = m.node;
              from.send(wire::JobDescription{options_.job, {}, {}});
            },
            [&](const wire::StageHello& m) { joined(peer, m); }, [&](const wire::Committed& m) { committed(m); },
            [&](const wire::PeerLost& m) { peer_lost(peer, m); }, [&](const wire::StageAssigned& m) { send_part(peer, m.generation); },
            [&](const wire::StageStatus& m) {
              if (peer.device) status(*peer.device, m);
            },
            [](const auto&) {}},  // a Heartbeat; others are refused by objection()
      message);
}

void PipelineChiefProcess::joined(StagePeer& peer, const wire::StageHello& reported) {
  const std::uint32_t device = device_called(reported.node, options_.cluster).value();
  if (StagePeer* before = peer_of_device(peers_, device)) {  // it died, and is back before that was noticed
    before->device.reset();
    before->connection->transport().abandon("silent for too long, and another process has taken its place");
    tell(protocol::DeviceLost{device});
  }
  peer.device = device;
  peer.listens = reported.address;
  hooks_.log(fmt::format("{} is here, at {}", reported.node, reported.address));
  if (outcome_) return peer.connection->send(wire::Stop{});
  peer.connection->send(reported);
  tell(protocol::DeviceJoined{device});
}

void PipelineChiefProcess::closed(PeerConnection& connection, const Error& why) {
  StagePeer& peer = peers_.at(connection);
  const auto device = peer.device;
  peers_.remove(peer);
  if (ended_ || !device) return;
  if (!outcome_) hooks_.log(fmt::format("lost {}: {}", node_name(*device), why.message));
  if (!outcome_) tell(protocol::DeviceLost{*device});
  finish_when_done();
}

std::span<std::byte> PipelineChiefProcess::receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) {
  const auto& slice = std::get<wire::StageSlice>(head);
  const bool wanted = slice.generation == layout_.generation && slice.mini_batches > pipeline_chief_.kept() && layout_.assigned();
  return models_.receive_buffer(from, slice, bytes, wanted);
}

void PipelineChiefProcess::received(PeerConnection& from, const wire::Message& head) {
  slices_moved_ = true;
  const auto& slice = std::get<wire::StageSlice>(head);
  const KeptModels::Received what = models_.received(from, slice);
  if (what == KeptModels::Received::not_finite)
    return diverged(fmt::format("stage {} on node {} submitted values that are not finite, after mini-batch {}", slice.stage + 1,
                                node_name(layout_.cut[slice.stage].device), slice.mini_batches));
  if (what == KeptModels::Received::whole_model) tell(protocol::ModelSnapshotComplete{slice.mini_batches});
}

// Reports of stages ---------------------------------------------------------------------------------------------------------------------

void PipelineChiefProcess::committed(const wire::Committed& reported) {
  if (reported.generation != layout_.generation || !layout_.assigned()) return;
  layout_.committed[reported.stage] = reported.mini_batches;
  disconnections_.progressed();
  const auto work = trace_.committed(clock_.now(), reported, layout_.micro_batches);
  if (!reported.finite && !outcome_)
    return diverged(fmt::format("stage {} on node {} received or computed values that are not finite, by mini-batch {}", reported.stage + 1,
                                node_name(layout_.cut[reported.stage].device), reported.mini_batches));
  tell(protocol::StageCommitted{reported.generation, reported.stage, reported.mini_batches, work.busy_s, work.micro_batches});
  trace_.write_reported();
}

void PipelineChiefProcess::status(std::uint32_t device, const wire::StageStatus& reported) {
  const auto stage = layout_.stage_of(device);
  if (stage) tell(protocol::StageReported{reported.generation, *stage, reported.done, reported.busy, std::exchange(slices_moved_, false)});
}

void PipelineChiefProcess::peer_lost(StagePeer& peer, const wire::PeerLost& reported) {
  if (reported.generation != layout_.generation || peer.sent_peer_lost == layout_.generation) return;
  peer.sent_peer_lost = layout_.generation;
  disconnections_.reported([this, generation = reported.generation, why = wire::printable(reported.why), node = node_name(*peer.device)] {
    if (ended_ || outcome_ || generation != layout_.generation || !layout_.assigned()) return;
    hooks_.log(fmt::format("{} and its neighbour have lost each other: {}", node, why));
    if (disconnections_.confirmed())
      return end(world_failed(fmt::format(
          "{} does not reach its neighbour: {}; expected nodes that reach each other where --listen and --reach say", node, why)));
    tell(protocol::StagesDisconnected{generation});
  });
}

/// The stage has received its AssignStage, so it can tell the slices of this layout from earlier ones. They are sent once.
void PipelineChiefProcess::send_part(StagePeer& peer, std::uint32_t generation) {
  if (generation != layout_.generation || peer.sent_stage_assigned == generation) return;
  const auto stage = layout_.stage_of(*peer.device);
  if (!stage) return;
  peer.sent_stage_assigned = generation;
  const std::size_t most = std::max<std::size_t>(1, options_.transport.slice_bytes / sizeof(float));
  const auto part = std::make_shared<const store::StagePart>(models_.model().part(layout_.places[*stage]));
  const auto send = [&](const std::vector<float>& values, wire::StateKind state_kind) {
    for (std::size_t at = 0; at < values.size(); at += most) {
      const auto slice = std::span(values).subspan(at, std::min(most, values.size() - at));
      const wire::StageSlice head{generation, *stage, pipeline_chief_.kept(), state_kind, at};
      peer.connection->send_payload({.head = head, .payload = std::as_bytes(slice)}, part);
    }
  };
  send(part->values, wire::StateKind::values);
  send(part->first, wire::StateKind::first);
  send(part->second, wire::StateKind::second);
}

// The machine's actions ------------------------------------------------------------------------------------------------------------------

void PipelineChiefProcess::tell(const protocol::PipelineChiefEvent& event) {
  if (ended_ || outcome_) return;
  protocol::PipelineChiefActions actions;
  const std::uint64_t kept_before = pipeline_chief_.kept();
  pipeline_chief_.step(clock_.now(), event, actions);
  // Commits are traced before the model with them is saved, and that model is kept before stages are sent their parts of it.
  const auto rest = std::stable_partition(actions.begin(), actions.end(), [](const protocol::PipelineChiefAction& action) {
    return std::holds_alternative<protocol::CommittedByAll>(action);
  });
  std::for_each(actions.begin(), rest, [&](const auto& action) { carry_out(action); });
  if (pipeline_chief_.kept() != kept_before) models_.keep(pipeline_chief_.kept());
  std::for_each(rest, actions.end(), [&](const auto& action) { carry_out(action); });
}

void PipelineChiefProcess::carry_out(const protocol::PipelineChiefAction& action) {
  std::visit(match{[&](const protocol::AssignStages& a) { assign_stages(a); }, [&](const protocol::AllowMore& a) { allow_more(a); },
                   [&](const protocol::CommittedByAll& a) { trace_.committed_by_all(clock_.now(), a.mini_batches, layout_.cut.size()); },
                   [&](const protocol::NotEnoughDevices&) { not_enough_devices(); }, [&](const protocol::StageExpelled& a) { expelled(a); },
                   [&](const protocol::NoProgress& a) { no_progress(a); },
                   [&](const protocol::PipelineDone&) { end_for(protocol::EndReason::every_sample_counted); }},
             action);
}

void PipelineChiefProcess::assign_stages(const protocol::AssignStages& assignment) {
  const Instant now = clock_.now();
  blocked_since_.reset();
  layout_ = make_layout(assignment, options_.places(assignment.cut));
  models_.begin(layout_.places);
  const std::uint64_t lost = trace_.assigned(now, assignment);
  hooks_.log(fmt::format("{}: {} stages from mini-batch {}{}", reason_text(assignment.why), layout_.cut.size(), assignment.from,
                         lost > 0 ? fmt::format("; {} are computed again", lost) : ""));
  AssignmentFacts facts{.assignment = assignment,
                        .problem = options_.pipeline_chief.problem,
                        .addresses = {},
                        .keys = {},
                        .moments = !models_.model().first.empty(),
                        .trained = trace_.trained(now).time_since_epoch()};
  std::vector<StagePeer*> stages;
  for (const pipeline::Stage& stage : layout_.cut) {
    stages.push_back(peer_of_device(peers_, stage.device));
    check(stages.back() != nullptr, "every device of an assignment has joined");
    facts.addresses.push_back(stages.back()->listens);
    facts.keys.push_back(random_key());
  }
  for (std::uint32_t stage = 0; stage < stages.size(); ++stage) stages[stage]->connection->send(assign_message(facts, stage));
}

void PipelineChiefProcess::allow_more(const protocol::AllowMore& more) {
  layout_.allowed = more.allowed;
  trace_.allowed(clock_.now(), more.allowed);
  for (const pipeline::Stage& stage : layout_.cut)
    if (StagePeer* peer = peer_of_device(peers_, stage.device))
      peer->connection->send(wire::Allow{layout_.generation, more.allowed, more.submit_state});
}

void PipelineChiefProcess::not_enough_devices() {
  layout_.cut.clear();
  layout_.generation = pipeline_chief_.generation();
  models_.begin({});
  blocked_since_ = clock_.now();
  hooks_.log("the nodes that are here cannot hold the model: waiting for another one to join");
}

void PipelineChiefProcess::expelled(const protocol::StageExpelled& stage) {
  trace_.expelled(clock_.now(), stage);
  StagePeer* peer = peer_of_device(peers_, stage.device);
  const std::string at = peer != nullptr ? fmt::format(" at {}", peer->connection->address()) : "";
  hooks_.log(expulsion_text(node_name(stage.device) + at, stage, layout_.cut.size(), options_.cluster.step_limit));
  if (peer == nullptr) return;
  peer->device.reset();
  peer->connection->transport().abandon("its device hangs");
}

void PipelineChiefProcess::no_progress(const protocol::NoProgress& stuck) {
  hooks_.log(fmt::format("no stage computes and none has made progress for {:.0f} s: messages between them were lost; all start again",
                         seconds(stuck.for_how_long)));
  if (disconnections_.confirmed())
    end(world_failed("the stages make no progress, and none of them computes: look at the links between the nodes; go on with --resume"));
}

// The end --------------------------------------------------------------------------------------------------------------------------------

void PipelineChiefProcess::interrupt() {
  if (ended_ || outcome_) return;
  models_.save();
  end_for(protocol::EndReason::interrupted);
}

/// Evaluating and saving continue; training does not.
void PipelineChiefProcess::end_for(protocol::EndReason why) {
  outcome_.emplace();
  outcome_->why = why;
  outcome_->ended = trained();
  finish_when_done();
}

/// The model that was kept last is finite and remains.
void PipelineChiefProcess::diverged(const std::string& what) {
  if (ended_ || (outcome_ && outcome_->why == protocol::EndReason::diverged)) return;
  hooks_.log(fmt::format("training diverged: {}", what));
  if (!outcome_) return end_for(protocol::EndReason::diverged);
  outcome_->why = protocol::EndReason::diverged;
  finish_when_done();
}

void PipelineChiefProcess::finish_when_done() {
  if (!outcome_ || ended_ || !models_.done()) return;
  trace_.write_all();
  outcome_->updates = pipeline_chief_.kept();  // later mini-batches are in no model
  outcome_->samples = models_.samples_of(outcome_->updates);
  if (trace_.computed_again() > 0) hooks_.log(fmt::format("{} mini-batches were computed again after losses", trace_.computed_again()));
  trace_.write({outcome_->ended, trace::Finished{.why = static_cast<std::uint8_t>(outcome_->why), .samples = outcome_->samples}});
  for (auto& [id, peer] : peers_) peer.connection->send(wire::Stop{});
  ended_ = true;
  ticker_.stop();
  shutdown_.at(clock_.now() + stage_shutdown_time);
}

void PipelineChiefProcess::end(Result<protocol::TrainingOutcome> how) {
  if (ended_) return;
  ended_ = true;
  ticker_.stop();
  if (over_) over_(std::move(how));
}

}  // namespace motley::runtime
