#include "sim/pipeline_world.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/match.h"

namespace motley::sim {

using plan::Part;

PipelineWorld::PipelineWorld(PipelineWorldOptions options, PipelineNumbers& numbers, trace::Sink& trace)
    : options_(std::move(options)), numbers_(numbers), trace_(trace), believed_(options_.problem) {
  check(options_.schedule.replan_every == 0 || options_.reschedule, "a world that cuts anew makes schedules anew");
  for (std::uint32_t n = 0; n < options_.cluster.nodes.size(); ++n) devices_.emplace_back(options_.cluster, NodeId{n}, options_.seed);
  group_up_.resize(options_.cluster.groups.size());
  group_down_.resize(options_.cluster.groups.size());
  make_stages(0);
}

void PipelineWorld::make_stages(std::uint64_t first_mini) {
  const plan::Problem& problem = options_.problem;
  check(plan::sound(problem, options_.cut), "a pipeline holds every block once");
  const auto count = static_cast<std::uint32_t>(options_.cut.size());
  const plan::Sums sums(problem.blocks);
  stages_.clear();
  part_s_.clear();
  kept_bytes_.clear();
  parameter_bytes_.clear();
  for (std::uint32_t s = 0; s < count; ++s) {
    const auto& [first, last, device] = options_.cut[s];
    stages_.emplace_back(protocol::StageOptions{options_.schedule, s, count, first_mini, first_mini});
    std::vector<double>& parts = part_s_.emplace_back(3, problem.devices[device].overhead_s / 3);
    for (std::uint32_t b = first; b < last; ++b) {
      parts[0] += problem.blocks[b].forward_s / problem.devices[device].speed;
      parts[1] += problem.blocks[b].input_s / problem.devices[device].speed;
      parts[2] += problem.blocks[b].weight_s / problem.devices[device].speed;
    }
    kept_bytes_.push_back(sums.kept_bytes(first, last));
    parameter_bytes_.push_back(sums.parameter_bytes(first, last));
  }
  forth_.assign(count, now_);
  back_.assign(count, now_);
  versions_.assign(count, {});
  measured_.assign(count, {});
  ending_.peak_kept_bytes.resize(std::max<std::size_t>(ending_.peak_kept_bytes.size(), count));
  ending_.peak_stash_bytes.resize(ending_.peak_kept_bytes.size());
}

void PipelineWorld::start() {
  const std::uint64_t first = stages_.front().committed();
  for (std::uint32_t s = 0; s < stages_.size(); ++s) tell(s, protocol::StageStarted{});
  allow_more(first);
}

PipelineEnding PipelineWorld::run() {
  for (std::uint32_t s = 0; s < stages_.size(); ++s) report({.kind = trace::Kind::joined, .worker = {s}, .first = options_.cut[s].device});
  start();
  while (!queue_.empty() && !ending_.diverged) {
    auto [when, what] = queue_.pop();
    now_ = when;
    std::visit(
        match{[&](const PartEnds& e) {
                numbers_.done(e.stage, e.part, e.micro);
                report(
                    {.kind = trace::Kind::part_ended, .worker = {e.stage}, .step = {e.micro}, .first = static_cast<std::uint64_t>(e.part)});
                Measured& measured = measured_[e.stage];
                measured.busy_s += seconds(now_ - measured.since);
                if (e.part == Part::weight) {
                  versions_[e.stage].erase(e.micro);
                  ++measured.micros;
                }
                tell(e.stage, protocol::PartDone{e.part, e.micro});
              },
              [&](const OutputArrives& e) { tell(e.stage, protocol::InputHere{e.micro}); },
              [&](const GradientArrives& e) { tell(e.stage, protocol::GradientHere{e.micro}); }, [&](const BlocksMoved&) { recut(); }},
        what);
  }
  check(ending_.diverged || ending_.mini_batches == options_.mini_batches, "a pipeline comes to its end");
  ending_.ended = now_;
  report({.kind = trace::Kind::finished, .first = ending_.mini_batches * options_.samples});
  return ending_;
}

/// As many as can be begun anyhow; a few, so that nothing is under way soon after no more are allowed.
void PipelineWorld::allow_more(std::uint64_t finished) {
  allowed_ = std::min(options_.mini_batches, finished + options_.schedule.ahead + 2);
  for (std::uint32_t s = 0; s < stages_.size(); ++s) tell(s, protocol::MoreMiniBatches{allowed_});
}

/// Every stage has committed this one.
void PipelineWorld::look(std::uint64_t mini) {
  if (wanted_) {
    const bool idle = std::all_of(stages_.begin(), stages_.end(), [](const protocol::Stage& stage) { return stage.finished(); });
    if (idle) queue_.at(now_ + from_seconds(plan::move_s(options_.problem, options_.cut, wanted_->cut)), BlocksMoved{});
    return;
  }
  const std::uint32_t every = options_.schedule.replan_every;
  if (every > 0 && (mini + 1) % every == 0 && mini + 1 < options_.mini_batches) {
    std::vector<double> stage_s;
    for (Measured& measured : measured_) {
      stage_s.push_back(measured.micros > 0 ? measured.busy_s / static_cast<double>(measured.micros) : 0);
      measured.busy_s = 0;
      measured.micros = 0;
    }
    wanted_ = plan::replan(believed_, options_.cut, stage_s);
  }
  if (!wanted_)
    allow_more(mini + 1);
  else
    look(mini);  // perhaps nothing is under way
}

void PipelineWorld::recut() {
  const std::uint64_t from = stages_.front().committed();
  options_.cut = wanted_->cut;
  believed_ = wanted_->problem;
  options_.schedule = options_.reschedule(believed_, options_.cut);
  wanted_.reset();
  numbers_.recut(options_.cut);
  make_stages(from);
  for (std::uint32_t s = 0; s < stages_.size(); ++s)
    report({.kind = trace::Kind::recut,
            .epoch = options_.cut[s].device,
            .worker = {s},
            .version = {from},
            .first = options_.cut[s].first,
            .last = options_.cut[s].last});
  start();
}

void PipelineWorld::tell(std::uint32_t stage, const protocol::StageEvent& event) {
  protocol::StageActions actions;
  stages_[stage].step(event, actions);
  for (const auto& action : actions) carry_out(stage, action);
}

void PipelineWorld::carry_out(std::uint32_t stage, const protocol::StageAction& action) {
  const plan::Problem& problem = options_.problem;
  std::visit(match{[&](const protocol::RunPart& a) { begin(stage, a); },
                   [&](const protocol::ShipOutput& a) {
                     const double bytes = problem.blocks[options_.cut[stage].last - 1].output_bytes;
                     queue_.at(travel(stage, stage + 1, bytes), OutputArrives{stage + 1, a.micro});
                   },
                   [&](const protocol::ShipGradient& a) {
                     const double bytes = problem.blocks[options_.cut[stage].first - 1].output_bytes;
                     queue_.at(travel(stage, stage - 1, bytes), GradientArrives{stage - 1, a.micro});
                   },
                   [&](const protocol::CommitMiniBatch& a) { commit(stage, a.mini); }},
             action);
}

void PipelineWorld::begin(std::uint32_t stage, const protocol::RunPart& part) {
  if (part.part == Part::forward) {
    numbers_.begun(stage, part.micro, part.late);
    versions_[stage][part.micro] = {stages_[stage].committed(), part.late > 0 && options_.schedule.predicts};
    weigh(stage);
  }
  const double time = part_s_[stage][static_cast<std::size_t>(part.part)];
  measured_[stage].since = now_;
  queue_.at(devices_[options_.cut[stage].device].spend(now_, from_seconds(time)), PartEnds{stage, part.part, part.micro});
  report({.kind = trace::Kind::part_began,
          .worker = {stage},
          .step = {part.micro},
          .version = {versions_[stage].at(part.micro).committed},
          .first = static_cast<std::uint64_t>(part.part),
          .last = part.late});
}

/// What the stage keeps now: activations, and each version of its parameters that is in use and not the newest.
void PipelineWorld::weigh(std::uint32_t stage) {
  const double kept = static_cast<double>(stages_[stage].kept()) * kept_bytes_[stage];
  std::set<Used> old;
  for (const auto& [micro, used] : versions_[stage])
    if (used != Used{stages_[stage].committed(), false}) old.insert(used);
  ending_.peak_kept_bytes[stage] = std::max(ending_.peak_kept_bytes[stage], kept);
  ending_.peak_stash_bytes[stage] =
      std::max(ending_.peak_stash_bytes[stage], kept + static_cast<double>(old.size()) * parameter_bytes_[stage]);
}

void PipelineWorld::commit(std::uint32_t stage, std::uint64_t mini) {
  numbers_.committed(stage, mini);
  report({.kind = trace::Kind::committed, .worker = {stage}, .version = {mini + 1}});
  weigh(stage);
  for (const protocol::Stage& other : stages_)
    if (other.committed() <= mini) return;
  const std::uint64_t samples = (mini + 1) * options_.samples;
  report({.kind = trace::Kind::applied, .version = {mini + 1}, .first = stages_.size()});
  const auto evaluation = numbers_.finished(mini);
  if (evaluation.made)
    report(
        {.kind = trace::Kind::evaluated, .version = {mini + 1}, .first = samples, .value = evaluation.accuracy, .second = evaluation.loss});
  ending_.mini_batches = mini + 1;
  ending_.diverged = evaluation.diverged;
  if (!ending_.diverged) look(mini);
}

/// When the last byte is there. A way is taken for as long as the bytes take on its narrowest part.
Instant PipelineWorld::travel(std::uint32_t from_stage, std::uint32_t to_stage, double bytes) {
  const std::uint32_t from = options_.cut[from_stage].device;
  const std::uint32_t to = options_.cut[to_stage].device;
  const plan::Between& link = options_.problem.links[from][to];
  Instant& way = to_stage > from_stage ? forth_[from_stage] : back_[to_stage];
  std::vector<Instant*> taken{&way};
  const auto from_group = options_.cluster.nodes[from].group;
  const auto to_group = options_.cluster.nodes[to].group;
  if (from_group != to_group) {
    if (from_group) taken.push_back(&group_up_[*from_group]);
    if (to_group) taken.push_back(&group_down_[*to_group]);
  }
  Instant start = now_;
  for (const Instant* free : taken) start = std::max(start, *free);
  const Instant through = start + from_seconds(bytes / link.bytes_per_second);
  for (Instant* free : taken) *free = through;
  ending_.bytes += static_cast<std::uint64_t>(bytes);
  return through + from_seconds(link.latency_s);
}

void PipelineWorld::report(trace::Event event) {
  event.at = now_;
  trace_.told(event);
}

}  // namespace motley::sim
