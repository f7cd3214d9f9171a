#include "sim/pipeline_world.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "pipeline/replan.h"
#include "protocol/trace_events.h"

namespace motley::sim {

using pipeline::Part;

PipelineWorld::PipelineWorld(PipelineWorldOptions options, PipelineNumbers& numbers, trace::Sink& trace)
    : options_(std::move(options)),
      numbers_(numbers),
      trace_(trace),
      pipeline_chief_({options_.problem, options_.cut, options_.reschedule, options_.repartition, options_.mini_batches, 0,
                       options_.cluster.step_limit}),
      channels_(options_.cluster, options_.slices) {
  for (std::uint32_t n = 0; n < options_.cluster.nodes.size(); ++n) devices_.emplace_back(options_.cluster, NodeId{n}, options_.seed);
}

void PipelineWorld::make_stages(std::uint64_t from) {
  const pipeline::Problem& problem = options_.problem;
  const auto count = static_cast<std::uint32_t>(cut_.size());
  const pipeline::Sums sums(problem.blocks);
  const std::uint64_t micros = Batching{samples_of(options_.mini_batches), options_.samples, schedule_.micro_batches}.micro_batches();
  stages_.clear();
  memory_.clear();
  timing_.assign(count, {});
  for (std::uint32_t s = 0; s < count; ++s) {
    const auto& [first, last, device] = cut_[s];
    stages_.emplace_back(protocol::StageOptions{schedule_, s, count, from, from, micros});
    memory_.emplace_back(sums.kept_bytes(first, last), sums.parameter_bytes(first, last));
    timing_[s].part_s = pipeline::parts_s(problem, cut_[s]);
  }
  channels_.rebuild(problem, cut_);
  state_submitted_.assign(count, from);
  outcome_.peak_kept_bytes.resize(std::max<std::size_t>(outcome_.peak_kept_bytes.size(), count));
  outcome_.peak_stash_bytes.resize(outcome_.peak_kept_bytes.size());
}

PipelineOutcome PipelineWorld::run() {
  for (std::size_t f = 0; f < options_.cluster.faults.size(); ++f) queue_.at(options_.cluster.faults[f].at, FaultDue{f});
  for (std::uint32_t n = 0; n < options_.cluster.nodes.size(); ++n)
    if (cluster::present_at_start(options_.cluster, NodeId{n})) tell(protocol::DeviceJoined{n});
  if (generation_ == 0) tell(protocol::StartTimeout{});
  while (!queue_.empty() && !outcome_.diverged && !pipeline_chief_.finished()) {
    auto [when, event] = queue_.pop();
    if (is_outdated(event)) continue;
    now_ = when;
    std::visit(
        match{[&](const PartEnds& e) { ended(e); }, [&](const OutputArrives& e) { tell(e.stage, protocol::InputHere{e.micro}); },
              [&](const GradientArrives& e) { tell(e.stage, protocol::GradientHere{e.micro}); },
              [&](const SliceThrough& e) { through(e.channel); },
              [&](const ModelLoaded& e) {
                for (std::uint32_t s = 0; s < stages_.size() && e.generation == generation_; ++s) tell(s, protocol::StageStarted{});
                for (std::uint32_t s = 0; s < stages_.size() && e.generation == generation_; ++s)
                  tell(s, protocol::MoreMiniBatches{e.allowed});
              },
              [&](const StagesReport&) { stages_report(); }, [&](const FaultDue& e) { inject_fault(options_.cluster.faults[e.fault]); },
              [&](const DeviceMoves& e) {
                if (!away_.contains(e.device)) tell(protocol::DeviceJoined{e.device});
              }},
        event);
  }
  outcome_.not_enough_devices = !outcome_.diverged && !pipeline_chief_.finished();
  check(!outcome_.not_enough_devices || cut_.empty(), "a pipeline that can go on ends with its last mini-batch");
  outcome_.ended = now_;
  const auto why = outcome_.diverged ? protocol::EndReason::diverged : protocol::EndReason::every_sample_counted;
  record(trace::Finished{.why = static_cast<std::uint8_t>(why), .samples = samples_of(outcome_.mini_batches)});
  return outcome_;
}

/// Whether the event belongs to an earlier generation.
bool PipelineWorld::is_outdated(const Event& event) const {
  return std::visit(match{[&](const FaultDue&) { return false; }, [&](const DeviceMoves&) { return false; },
                          [&](const auto& e) { return e.generation != generation_; }},
                    event);
}

/// As real stages do twice per heartbeat.
void PipelineWorld::stages_report() {
  const std::uint32_t generation = generation_;
  queue_.at(now_ + options_.cluster.heartbeat / 2, StagesReport{generation});
  for (std::uint32_t s = 0; s < stages_.size() && generation == generation_; ++s)
    tell(protocol::StageReported{generation, s, timing_[s].parts, timing_[s].busy});
}

void PipelineWorld::inject_fault(const cluster::Fault& fault) {
  record(trace::FaultInjected{.node = fault.node.value, .kind = static_cast<std::uint8_t>(fault.kind)});
  const std::uint32_t device = fault.node.value;
  if (fault.kind == cluster::FaultKind::kill || fault.kind == cluster::FaultKind::leave) {
    away_.insert(device);
    tell(protocol::DeviceLost{device});
  }
  if (fault.kind == cluster::FaultKind::join) {
    away_.erase(device);
    tell(protocol::DeviceJoined{device});
  }
}

// The pipeline chief ----------------------------------------------------------------------------------------------------------------------

void PipelineWorld::tell(const protocol::PipelineChiefEvent& event) {
  protocol::PipelineChiefActions actions;
  pipeline_chief_.step(now_, event, actions);
  for (const auto& action : actions) carry_out(action);
}

void PipelineWorld::carry_out(const protocol::PipelineChiefAction& action) {
  std::visit(match{[&](const protocol::AssignStages& a) { assign_stages(a); },
                   [&](const protocol::AllowMore& a) {
                     allowed_ = a.allowed;
                     all_submit_state_ = a.submit_state;
                     const std::uint32_t generation = generation_;
                     for (std::uint32_t s = 0; s < stages_.size() && generation == generation_; ++s) {
                       tell(s, protocol::MoreMiniBatches{a.allowed});
                       if (a.submit_state && generation == generation_ && stages_[s].committed() == allowed_) submit_state(s);
                     }
                   },
                   [&](const protocol::CommittedByAll& a) {
                     outcome_.mini_batches = a.mini_batches;
                     record(trace::Applied{.version = {a.mini_batches}, .parts = stages_.size()});
                   },
                   [&](const protocol::NotEnoughDevices&) {
                     cut_.clear();
                     stages_.clear();
                     ++generation_;
                   },
                   [&](const protocol::PipelineDone&) {},
                   [&](const protocol::StageExpelled& a) {
                     record(protocol::to_trace_event(a));
                     const Instant moves = devices_[a.device].hangs_until(now_);
                     if (moves < now_ + cluster::forever / 2) queue_.at(moves, DeviceMoves{a.device});
                   },
                   [&](const protocol::NoProgress&) {}},
             action);
}

void PipelineWorld::assign_stages(const protocol::AssignStages& assignment) {
  const double loading = loading_s(cut_, assignment.cut, assignment.why);
  cut_ = assignment.cut;
  schedule_ = assignment.schedule;
  generation_ = assignment.generation;
  allowed_ = assignment.allowed;
  all_submit_state_ = false;
  outcome_.again += outcome_.mini_batches - std::min(outcome_.mini_batches, assignment.from);
  outcome_.mini_batches = assignment.from;
  numbers_.assign_stages(cut_, schedule_, assignment.from);
  make_stages(assignment.from);
  for (const trace::EventData& event : protocol::to_trace_events(assignment)) record(event);
  queue_.at(now_ + from_seconds(loading), ModelLoaded{generation_, assignment.allowed});
  queue_.at(now_ + options_.cluster.heartbeat / 2, StagesReport{generation_});
}

/// Moved blocks are sent between devices; after a loss every stage receives its part from the chief.
double PipelineWorld::loading_s(const pipeline::Cut& before, const pipeline::Cut& after, protocol::AssignReason why) const {
  if (why == protocol::AssignReason::begins) return 0;
  const pipeline::Problem& problem = options_.problem;
  if (why != protocol::AssignReason::loss) return pipeline::move_s(problem, before, after);
  const pipeline::Sums sums(problem.blocks);
  double longest = 0;
  for (const pipeline::Stage& stage : after) {
    const pipeline::DeviceLink& link = problem.links[stage.device][stage.device];
    longest = std::max(longest, 2 * sums.parameter_bytes(stage.first, stage.last) / link.bytes_per_second + link.latency_s);
  }
  return longest;
}

// The stages -----------------------------------------------------------------------------------------------------------------------------

void PipelineWorld::tell(std::uint32_t stage, const protocol::StageEvent& event) {
  protocol::StageActions actions;
  stages_[stage].step(event, actions);
  const std::uint32_t generation = generation_;
  for (const auto& action : actions) {
    if (generation != generation_) return;  // a new layout
    carry_out(stage, action);
  }
}

void PipelineWorld::carry_out(std::uint32_t stage, const protocol::StageAction& action) {
  const pipeline::Problem& problem = options_.problem;
  std::visit(match{[&](const protocol::RunPart& a) { begin(stage, a); },
                   [&](const protocol::ShipOutput& a) {
                     ship(PipelineChannels::forth(stage), a.micro, problem.blocks[cut_[stage].last - 1].output_bytes);
                   },
                   [&](const protocol::ShipGradient& a) {
                     ship(PipelineChannels::back(stage - 1), a.micro, problem.blocks[cut_[stage].first - 1].output_bytes);
                   },
                   [&](const protocol::CommitMiniBatch& a) { commit(stage, a.mini); }},
             action);
}

void PipelineWorld::begin(std::uint32_t stage, const protocol::RunPart& part) {
  if (part.part == Part::forward) {
    numbers_.begun(stage, part.micro, part.late);
    memory_[stage].begin(part.micro, stages_[stage].committed(), part.late > 0 && schedule_.predicts);
    update_peaks(stage);
  }
  const double time = timing_[stage].part_s[static_cast<std::size_t>(part.part)];
  timing_[stage].since = now_;
  timing_[stage].busy = true;
  queue_.at(devices_[cut_[stage].device].spend(now_, from_seconds(time)), PartEnds{generation_, stage, part.part, part.micro});
  record(trace::PartBegan{.stage = {stage},
                          .micro_batch = part.micro,
                          .version = {memory_[stage].version_of(part.micro)},
                          .part = static_cast<std::uint8_t>(part.part),
                          .late = part.late});
}

void PipelineWorld::ended(const PartEnds& part) {
  numbers_.done(part.stage, part.part, part.micro);
  record(trace::PartEnded{.stage = {part.stage}, .micro_batch = part.micro, .part = static_cast<std::uint8_t>(part.part)});
  Timing& timing = timing_[part.stage];
  timing.busy_s += seconds(now_ - timing.since);
  timing.busy = false;
  ++timing.parts;
  if (part.part == Part::weight) {
    memory_[part.stage].release(part.micro);
    ++timing.micros;
  }
  tell(part.stage, protocol::PartDone{part.part, part.micro});
}

void PipelineWorld::update_peaks(std::uint32_t stage) {
  const double kept = memory_[stage].activation_bytes(stages_[stage].kept());
  const double stashed = memory_[stage].stashed_bytes(stages_[stage].committed());
  outcome_.peak_kept_bytes[stage] = std::max(outcome_.peak_kept_bytes[stage], kept);
  outcome_.peak_stash_bytes[stage] = std::max(outcome_.peak_stash_bytes[stage], kept + stashed);
}

void PipelineWorld::commit(std::uint32_t stage, std::uint64_t mini) {
  const std::uint64_t done = mini + 1;
  numbers_.committed(stage, mini);
  outcome_.diverged = outcome_.diverged || numbers_.diverged();
  record(trace::Committed{.stage = {stage}, .version = {done}});
  update_peaks(stage);
  const std::uint32_t generation = generation_;
  tell(protocol::StageCommitted{generation_, stage, done, timing_[stage].busy_s, timing_[stage].micros});
  if (generation != generation_) return;
  timing_[stage].busy_s = 0;
  timing_[stage].micros = 0;
  if (done % options_.snapshot_every == 0 || done == options_.mini_batches || (all_submit_state_ && done == allowed_)) submit_state(stage);
}

void PipelineWorld::submit_state(std::uint32_t stage) {
  const std::uint64_t done = stages_[stage].committed();
  if (state_submitted_[stage] >= done) return;
  state_submitted_[stage] = done;
  numbers_.submit_state(stage, done);
  for (const std::uint64_t other : state_submitted_)
    if (other < done) return;
  const auto evaluation = numbers_.kept(done);
  if (evaluation.made)
    record(trace::Evaluated{.version = {done}, .samples = samples_of(done), .accuracy = evaluation.accuracy, .loss = evaluation.loss});
  outcome_.diverged = outcome_.diverged || (evaluation.made && !std::isfinite(evaluation.loss));
  tell(protocol::ModelSnapshotComplete{done});
}

void PipelineWorld::ship(std::size_t channel, std::uint64_t micro, double bytes) {
  outcome_.bytes += static_cast<std::uint64_t>(bytes);
  if (const auto when = channels_.send(now_, channel, micro, bytes)) queue_.at(*when, SliceThrough{generation_, channel});
}

void PipelineWorld::through(std::size_t channel) {
  const PipelineChannels::SliceDone passed = channels_.through(now_, channel);
  const auto stage = static_cast<std::uint32_t>(channel / 2);
  if (passed.arrives && channel == PipelineChannels::forth(stage))
    queue_.at(*passed.arrives, OutputArrives{generation_, stage + 1, passed.micro});
  else if (passed.arrives)
    queue_.at(*passed.arrives, GradientArrives{generation_, stage, passed.micro});
  if (passed.next) queue_.at(*passed.next, SliceThrough{generation_, channel});
}

}  // namespace motley::sim
