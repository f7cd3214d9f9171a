#include "runtime/pipeline_chief_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "protocol/trace_events.h"
#include "runtime/random_key.h"

namespace motley::runtime {
namespace {

constexpr std::chrono::milliseconds stage_shutdown_time{500};  // for stages to take their Stop

std::string_view reason_of(protocol::AssignReason why) {
  switch (why) {
    case protocol::AssignReason::begins: return "training begins";
    case protocol::AssignReason::unevenness: return "stages have become uneven";
    case protocol::AssignReason::device_joined: return "a node has come";
    case protocol::AssignReason::loss: return "a stage was lost";
  }
  return "";
}

}  // namespace

PipelineChiefProcess::PipelineChiefProcess(boost::asio::io_context& event_loop, PipelineChiefProcessOptions options,
                                           PipelineChiefHooks hooks)
    : event_loop_(event_loop),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      pipeline_chief_(options_.pipeline_chief),
      models_(options_.second),
      saved_(options_.pipeline_chief.first_mini),
      done_(options_.pipeline_chief.first_mini),
      untrusted_log_(event_loop, hooks_.log),
      ticker_(event_loop),
      shutdown_timer_(event_loop),
      alive_(std::make_shared<bool>(true)) {}

PipelineChiefProcess::~PipelineChiefProcess() { *alive_ = false; }

Outcome PipelineChiefProcess::start(std::function<void(Result<protocol::TrainingOutcome>)> over) {
  over_ = std::move(over);
  auto acceptor = transport::listen(event_loop_, options_.listen, options_.transport, *this);
  if (!acceptor) return acceptor.error();
  acceptor_ = std::move(*acceptor);
  tick();
  return Done{};
}

Duration PipelineChiefProcess::trained() const { return options_.trained_before + (started_ ? clock_.now() - *started_ : Duration{0}); }

void PipelineChiefProcess::tick() {
  ticker_.expires_after(options_.cluster.heartbeat / 2);
  ticker_.async_wait([this, alive = alive_](const boost::system::error_code& cancelled) {
    if (cancelled || !*alive || ended_ || outcome_) return;
    note_driver_alive();
    const Instant now = clock_.now();
    std::vector<transport::Shaped*> silent;
    for (auto& [connection, link] : links_)
      if (link.device && now - link.last_heard > options_.cluster.silence_deadline) silent.push_back(link.connection.get());
    for (transport::Shaped* connection : silent) connection->abandon("silent for too long");
    expel_silent_pending(now);
    if (!started_ && generation_ == 0 && now > Instant{options_.start_deadline}) tell(protocol::StartTimeout{});
    if (blocked_since_ && now - *blocked_since_ > options_.empty_deadline) {
      hooks_.log(fmt::format("standing still for {:.0f} s: giving up; what was kept is saved, go on with --resume",
                             seconds(options_.empty_deadline)));
      save();
      return end_for(protocol::EndReason::nobody_left);
    }
    tick();
  });
}

// Connections ----------------------------------------------------------------------------------------------------------------------------

void PipelineChiefProcess::accepted(std::unique_ptr<transport::Connection> connection) {
  if (ended_) return;
  auto shaped =
      std::make_unique<transport::Shaped>(std::move(connection), event_loop_.get_executor(), transport::Shape{}, options_.transport);
  transport::Shaped& held = *shaped;
  links_[&held].connection = std::move(shaped);
  links_[&held].last_heard = clock_.now();
  held.start(*this);
}

void PipelineChiefProcess::refused(const std::string& address, const std::string& reason) {
  untrusted_log_.say(fmt::format("refused {}: {}", address, reason));
}

PipelineChiefProcess::Link* PipelineChiefProcess::link_of_device(std::uint32_t device) {
  for (auto& [connection, link] : links_)
    if (link.device == device) return &link;
  return nullptr;
}

const PipelineChiefProcess::Link* PipelineChiefProcess::link_of_device(std::uint32_t device) const {
  for (const auto& [connection, link] : links_)
    if (link.device == device) return &link;
  return nullptr;
}

void PipelineChiefProcess::on_message(transport::Connection& from, wire::Message message) {
  const auto found = links_.find(&from);
  if (found == links_.end()) return;
  Link& link = found->second;
  note_driver_alive();
  if (const auto why = objection(link, wire::Lane::control, message)) return expel(link, *why);
  link.last_heard = clock_.now();
  std::visit(match{[&](const wire::JoinRequest& reported) {
                     link.is = wire::Sender::stage;
                     link.name = reported.node;
                     link.connection->send(wire::JobDescription{options_.job, {}, {}});
                   },
                   [&](const wire::StageHello& reported) { registered(link, reported); },
                   [&](const wire::Committed& reported) { committed(reported); },
                   [&](const wire::PeerLost& reported) { peer_lost(link, reported); },
                   [&](const wire::StageAssigned& reported) { send_part(link, reported.generation); },
                   [&](const wire::StageStatus& reported) {
                     if (link.device) status(*link.device, reported);
                   },
                   [](const auto&) {}},  // a Heartbeat; the rest is refused above
             message);
}

void PipelineChiefProcess::registered(Link& link, const wire::StageHello& reported) {
  const auto& nodes = options_.cluster.nodes;
  const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const cluster::Node& n) { return n.name == reported.node; });
  const auto device = static_cast<std::uint32_t>(node - nodes.begin());
  if (Link* before = link_of_device(device)) {  // it died, and is back before that was noticed
    before->device.reset();
    before->connection->abandon("silent for too long, and another has come in its place");
    tell(protocol::DeviceLost{device});
  }
  link.device = device;
  link.address = reported.address;
  hooks_.log(fmt::format("{} is here, at {}", reported.node, reported.address));
  if (outcome_) return link.connection->send(wire::Stop{});
  link.connection->send(reported);
  tell(protocol::DeviceJoined{device});
}

void PipelineChiefProcess::closed(transport::Connection& connection, const Error& why) {
  const auto found = links_.find(&connection);
  if (found == links_.end()) return;
  const auto device = found->second.device;
  retire(std::move(found->second.connection));
  links_.erase(found);
  if (ended_ || !device) return;
  if (!outcome_) hooks_.log(fmt::format("lost {}: {}", options_.cluster.nodes[*device].name, why.message));
  if (!outcome_) tell(protocol::DeviceLost{*device});
  finish_when_done();
}

/// Destroyed when nobody is inside it; what it reads and writes lives as long.
void PipelineChiefProcess::retire(std::unique_ptr<transport::Shaped> connection) {
  retired_.push_back(std::move(connection));
  boost::asio::post(event_loop_, [this, alive = alive_] {
    if (!*alive) return;
    for (auto& old : retired_) {
      const transport::Connection* name = old.get();
      old.reset();
      landing_buffers_.erase(name);
      leaving_.erase(name);
    }
    retired_.clear();
  });
}

// The machine and its answers ------------------------------------------------------------------------------------------------------------

void PipelineChiefProcess::tell(const protocol::PipelineChiefEvent& event) {
  if (ended_ || outcome_) return;
  protocol::PipelineChiefActions actions;
  const std::uint64_t kept_before = pipeline_chief_.kept();
  pipeline_chief_.step(clock_.now(), event, actions);
  // What all have committed is told before the model of it is saved, and that model is here before others get their parts of it.
  const auto rest = std::stable_partition(actions.begin(), actions.end(), [](const protocol::PipelineChiefAction& action) {
    return std::holds_alternative<protocol::CommittedByAll>(action);
  });
  std::for_each(actions.begin(), rest, [&](const auto& action) { carry_out(action); });
  if (pipeline_chief_.kept() != kept_before) take_whole(pipeline_chief_.kept());
  std::for_each(rest, actions.end(), [&](const auto& action) { carry_out(action); });
}

void PipelineChiefProcess::carry_out(const protocol::PipelineChiefAction& action) {
  std::visit(match{[&](const protocol::AssignStages& a) { assign_stages(a); },
                   [&](const protocol::AllowMore& a) {
                     allowed_ = a.allowed;
                     times_.allow(Instant{trained()}, allowed_, done_);
                     for (const pipeline::Stage& stage : cut_)
                       if (Link* link = link_of_device(stage.device))
                         link->connection->send(wire::Allow{generation_, a.allowed, a.submit_state});
                   },
                   [&](const protocol::CommittedByAll& a) {
                     done_ = a.mini_batches;
                     done_at_ = Instant{trained()};
                     record_trace(done_at_, trace::Applied{.version = {a.mini_batches}, .parts = cut_.size()});
                   },
                   [&](const protocol::NotEnoughDevices&) {
                     cut_.clear();
                     models_.begin({});
                     generation_ = pipeline_chief_.generation();
                     blocked_since_ = clock_.now();
                     hooks_.log("the nodes that are here cannot hold the model: waiting for one to come");
                   },
                   [&](const protocol::StageExpelled& a) { expelled(a); }, [&](const protocol::NoProgress& a) { no_progress(a); },
                   [&](const protocol::PipelineDone&) { end_for(protocol::EndReason::every_sample_counted); }},
             action);
}

void PipelineChiefProcess::assign_stages(const protocol::AssignStages& assignment) {
  blocked_since_.reset();
  if (!started_) started_ = clock_.now();
  flush_until(Instant::max());
  const std::uint64_t lost = done_ - std::min(done_, assignment.from);
  again_ += lost;
  done_ = assignment.from;
  generation_ = assignment.generation;
  cut_ = assignment.cut;
  places_ = options_.places(cut_);
  micro_batches_ = assignment.schedule.micro_batches;
  allowed_ = assignment.allowed;
  committed_.assign(cut_.size(), assignment.from);
  keys_.resize(cut_.size());
  for (std::uint64_t& key : keys_) key = random_key();
  models_.begin(places_);
  const Duration now = trained();  // where the stages' clocks begin: whatever they do is told after it
  times_.begin(Instant{now}, cut_.size(), allowed_);
  peak_stash_bytes_.resize(std::max(peak_stash_bytes_.size(), cut_.size()));
  hooks_.log(fmt::format("{}: {} stages from mini-batch {}{}", reason_of(assignment.why), cut_.size(), assignment.from,
                         lost > 0 ? fmt::format("; {} are done again", lost) : ""));
  wire::AssignStage assign;
  assign.generation = generation_;
  for (const pipeline::Stage& stage : cut_) assign.sections.push_back({stage.first, stage.last, stage.device});
  assign.schedule = assignment.schedule;
  assign.from = assignment.from;
  assign.allowed = assignment.allowed;
  assign.moments = !options_.model.first.empty();
  for (std::uint32_t s = 0; s < cut_.size(); ++s) {
    Link* link = link_of_device(cut_[s].device);
    check(link != nullptr, "whoever is laid out is there");
    assign.stage = s;
    const Link* next = s + 1 < cut_.size() ? link_of_device(cut_[s + 1].device) : nullptr;
    assign.next = next != nullptr ? next->address : "";
    assign.kept_bytes = pipeline::Sums(options_.pipeline_chief.problem.blocks).kept_bytes(cut_[s].first, cut_[s].last);
    assign.parts_s = pipeline::parts_s(options_.pipeline_chief.problem, cut_[s]);
    assign.training = now;
    assign.before_key = s > 0 ? keys_[s - 1] : 0;
    assign.next_key = keys_[s];
    link->connection->send(assign);
  }
  for (const trace::EventData& event : protocol::to_trace_events(assignment)) record_trace(Instant{now}, event);
}

/// It has heard its AssignStage: what comes now is not taken for something else's.
void PipelineChiefProcess::send_part(Link& link, std::uint32_t generation) {
  if (generation != generation_ || link.assignment == generation) return;  // its part comes once
  const auto found = std::find_if(cut_.begin(), cut_.end(), [&](const pipeline::Stage& stage) { return stage.device == *link.device; });
  if (found == cut_.end()) return;
  link.assignment = generation;
  const auto s = static_cast<std::uint32_t>(found - cut_.begin());
  const std::size_t piece = std::max<std::size_t>(1, options_.transport.slice_bytes / sizeof(float));
  const auto part = std::make_shared<const store::StagePart>(options_.model.part(places_[s]));
  const auto send = [&](const std::vector<float>& numbers, wire::StateKind state_kind) {
    for (std::size_t at = 0; at < numbers.size(); at += piece) {
      leaving_[link.connection.get()][next_ticket_] = part;
      link.connection->send(transport::BulkMessage{wire::StageSlice{generation_, s, pipeline_chief_.kept(), state_kind, at},
                                                   std::as_bytes(std::span(numbers).subspan(at, std::min(piece, numbers.size() - at))), 0,
                                                   next_ticket_++});
    }
  };
  send(part->values, wire::StateKind::values);
  send(part->first, wire::StateKind::first);
  send(part->second, wire::StateKind::second);
}

void PipelineChiefProcess::sent(transport::Connection& to, std::uint64_t ticket) {
  slices_moved_ = true;
  if (const auto found = leaving_.find(&to); found != leaving_.end()) found->second.erase(ticket);
}

void PipelineChiefProcess::committed(const wire::Committed& reported) {
  if (reported.generation != generation_ || cut_.empty()) return;
  committed_[reported.stage] = reported.mini_batches;
  peer_losses_ = 0;
  double busy_s = 0;
  std::uint64_t micros = 0;
  std::vector<wire::PartRecord> parts = reported.parts;
  const Instant last = times_.believe(Instant{trained()}, reported.stage, micro_batches_, parts);
  for (const wire::PartRecord& did : parts) {
    busy_s += seconds(did.ended - did.began);
    micros += did.part == 2 ? 1 : 0;
    const WorkerId stage{reported.stage};
    record_trace(Instant{did.began},
                 trace::PartBegan{.stage = stage, .micro_batch = did.micro, .version = {did.version}, .part = did.part, .late = did.late});
    record_trace(Instant{did.ended}, trace::PartEnded{.stage = stage, .micro_batch = did.micro, .part = did.part});
  }
  record_trace(last, trace::Committed{.stage = {reported.stage}, .version = {reported.mini_batches}});
  peak_stash_bytes_[reported.stage] = std::max(peak_stash_bytes_[reported.stage], static_cast<double>(reported.stash_bytes));
  if (!reported.finite && !outcome_)
    return diverged(fmt::format("stage {} on node {} was given or has computed values that are not finite, by mini-batch {}",
                                reported.stage + 1, options_.cluster.nodes[cut_[reported.stage].device].name, reported.mini_batches));
  tell(protocol::StageCommitted{reported.generation, reported.stage, reported.mini_batches, busy_s, micros});
  flush_until(times_.recorded_until());
}

// The trace ------------------------------------------------------------------------------------------------------------------------------

void PipelineChiefProcess::record_trace(Instant at, const trace::EventData& data) { recorded_later_.emplace(at, trace::Event{at, data}); }

void PipelineChiefProcess::flush_until(Instant when) {
  while (!recorded_later_.empty() && recorded_later_.begin()->first <= when) {
    hooks_.on_event(recorded_later_.begin()->second);
    recorded_later_.erase(recorded_later_.begin());
  }
}

// The end --------------------------------------------------------------------------------------------------------------------------------

void PipelineChiefProcess::interrupt() {
  if (ended_ || outcome_) return;
  save();
  end_for(protocol::EndReason::interrupted);
}

/// Evaluating and saving go on; training does not.
void PipelineChiefProcess::end_for(protocol::EndReason why) {
  outcome_ = why;
  outcome_at_ = Instant{trained()};
  finish_when_done();
}

/// What was kept last is finite, and is what is left.
void PipelineChiefProcess::diverged(const std::string& what) {
  if (ended_ || outcome_ == protocol::EndReason::diverged) return;
  hooks_.log(fmt::format("training diverged: {}", what));
  if (!outcome_) return end_for(protocol::EndReason::diverged);
  outcome_ = protocol::EndReason::diverged;
  finish_when_done();
}

void PipelineChiefProcess::finish_when_done() {
  if (!outcome_ || ended_ || evaluating_ > 0) return;
  flush_until(Instant::max());
  protocol::TrainingOutcome outcome;
  outcome.why = *outcome_;
  outcome.ended = outcome_at_;
  outcome.updates = pipeline_chief_.kept();  // what was done since is in no model that is left
  outcome.samples = samples_of(outcome.updates);
  if (again_ > 0) hooks_.log(fmt::format("{} mini-batches were done again after losses", again_));
  hooks_.on_event({outcome.ended, trace::Finished{.why = static_cast<std::uint8_t>(*outcome_), .samples = outcome.samples}});
  for (auto& [connection, link] : links_) link.connection->send(wire::Stop{});
  ended_ = true;
  ticker_.cancel();
  shutdown_timer_.expires_after(stage_shutdown_time);
  shutdown_timer_.async_wait([this, alive = alive_, outcome](const boost::system::error_code&) {
    if (*alive && over_) over_(outcome);
  });
}

}  // namespace motley::runtime
