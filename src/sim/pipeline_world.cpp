#include "sim/pipeline_world.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/match.h"

namespace motley::sim {

using plan::Part;

PipelineWorld::PipelineWorld(PipelineWorldOptions options, PipelineNumbers& numbers, trace::Sink& trace)
    : options_(std::move(options)), numbers_(numbers), trace_(trace) {
  const plan::Problem& problem = options_.problem;
  check(plan::sound(problem, options_.cut), "a pipeline holds every block once");
  const auto count = static_cast<std::uint32_t>(options_.cut.size());
  const plan::Sums sums(problem.blocks);
  for (std::uint32_t s = 0; s < count; ++s) {
    const auto& [first, last, device] = options_.cut[s];
    stages_.emplace_back(protocol::StageOptions{options_.schedule, s, count, options_.mini_batches});
    devices_.emplace_back(options_.cluster, NodeId{device}, options_.seed);
    std::vector<double>& parts = part_s_.emplace_back(3);
    for (std::uint32_t b = first; b < last; ++b) {
      parts[0] += problem.blocks[b].forward_s / problem.devices[device].speed;
      parts[1] += problem.blocks[b].input_s / problem.devices[device].speed;
      parts[2] += problem.blocks[b].weight_s / problem.devices[device].speed;
    }
    kept_bytes_.push_back(sums.kept_bytes(first, last));
    parameter_bytes_.push_back(sums.parameter_bytes(first, last));
  }
  forth_.resize(count);
  back_.resize(count);
  group_up_.resize(options_.cluster.groups.size());
  group_down_.resize(options_.cluster.groups.size());
  versions_.resize(count);
  ending_.peak_kept_bytes.resize(count);
  ending_.peak_stash_bytes.resize(count);
}

PipelineEnding PipelineWorld::run() {
  const auto count = static_cast<std::uint32_t>(stages_.size());
  for (std::uint32_t s = 0; s < count; ++s) report({.kind = trace::Kind::joined, .worker = {s}, .first = options_.cut[s].device});
  for (std::uint32_t s = 0; s < count; ++s) tell(s, protocol::StageStarted{});
  while (!queue_.empty()) {
    auto [when, what] = queue_.pop();
    now_ = when;
    std::visit(
        match{[&](const PartEnds& e) {
                numbers_.done(e.stage, e.part, e.micro);
                report(
                    {.kind = trace::Kind::part_ended, .worker = {e.stage}, .step = {e.micro}, .first = static_cast<std::uint64_t>(e.part)});
                if (e.part == Part::weight) versions_[e.stage].erase(e.micro);
                tell(e.stage, protocol::PartDone{e.part, e.micro});
              },
              [&](const OutputArrives& e) { tell(e.stage, protocol::InputHere{e.micro}); },
              [&](const GradientArrives& e) { tell(e.stage, protocol::GradientHere{e.micro}); }},
        what);
  }
  for (const protocol::Stage& stage : stages_) check(stage.finished(), "a pipeline comes to its end");
  ending_.ended = now_;
  report({.kind = trace::Kind::finished, .first = options_.mini_batches * options_.samples});
  return ending_;
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
    versions_[stage][part.micro] = stages_[stage].committed();
    weigh(stage);
  }
  const double time = part_s_[stage][static_cast<std::size_t>(part.part)];
  queue_.at(devices_[stage].spend(now_, from_seconds(time)), PartEnds{stage, part.part, part.micro});
  report({.kind = trace::Kind::part_began,
          .worker = {stage},
          .step = {part.micro},
          .version = {versions_[stage].at(part.micro)},
          .first = static_cast<std::uint64_t>(part.part),
          .last = part.late});
}

/// What the stage keeps now: activations, and each version of its parameters that is in use and not the newest.
void PipelineWorld::weigh(std::uint32_t stage) {
  const double kept = static_cast<double>(stages_[stage].kept()) * kept_bytes_[stage];
  std::set<std::uint64_t> old;
  for (const auto& [micro, version] : versions_[stage])
    if (version != stages_[stage].committed()) old.insert(version);
  ending_.peak_kept_bytes[stage] = std::max(ending_.peak_kept_bytes[stage], kept);
  ending_.peak_stash_bytes[stage] =
      std::max(ending_.peak_stash_bytes[stage], kept + static_cast<double>(old.size()) * parameter_bytes_[stage]);
}

void PipelineWorld::commit(std::uint32_t stage, std::uint64_t mini) {
  numbers_.committed(stage, mini);
  report({.kind = trace::Kind::committed, .worker = {stage}, .version = {mini + 1}});
  for (const protocol::Stage& other : stages_)
    if (other.committed() <= mini) return;
  const std::uint64_t samples = (mini + 1) * options_.samples;
  report({.kind = trace::Kind::applied, .version = {mini + 1}, .first = stages_.size()});
  const auto evaluation = numbers_.finished(mini);
  if (evaluation.made)
    report(
        {.kind = trace::Kind::evaluated, .version = {mini + 1}, .first = samples, .value = evaluation.accuracy, .second = evaluation.loss});
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
