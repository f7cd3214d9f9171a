#include "app/pipeline_simulation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <cmath>

#include "app/pipeline.h"
#include "base/check.h"
#include "learn/stage_learner.h"
#include "sim/pipeline_numbers.h"
#include "sim/pipeline_world.h"
#include "trace/pipeline.h"

namespace motley::app {
namespace {

class StageLearning final : public store::StageSource {
 public:
  explicit StageLearning(std::unique_ptr<learn::StageLearner> learner) : learner_(std::move(learner)) {}
  store::Loss forward(std::uint64_t micro, std::span<const float> values, std::span<const std::uint32_t> samples, const Activation& input,
                      Activation& output) override {
    return at_border([&] {
      const learn::StepResult result = learner_->forward(micro, values, samples, input, output);
      return store::Loss{result.loss_sum, result.correct, result.samples};
    });
  }
  void input_gradient(std::uint64_t micro, const Activation& output_gradient, Activation& input_gradient) override {
    at_border([&] { learner_->input_gradient(micro, output_gradient, input_gradient); });
  }
  void weight_gradient(std::uint64_t micro, double scale, std::span<float> out) override {
    at_border([&] { learner_->weight_gradient(micro, scale, out); });
  }

 private:
  std::unique_ptr<learn::StageLearner> learner_;
};

using Stages = std::vector<sim::PipelineNumbersOptions::Stage>;

/// Stages for a cut, without values: what each computes, and where its tensors lie in the whole model.
Result<Stages> stages_for(const Job& job, const Material& material, const learn::ModelShape& whole, const plan::Cut& cut) {
  std::vector<std::uint32_t> first_blocks;
  for (const plan::Stage& stage : cut) first_blocks.push_back(stage.first);
  auto learners = learn::make_stages(job.model, material.data, first_blocks);
  if (!learners) return learners.error();
  Stages stages;
  for (auto& learner : *learners) {
    sim::PipelineNumbersOptions::Stage& stage = stages.emplace_back();
    stage.parameters = learner->shape().parameters;
    for (const learn::Tensor& tensor : learner->shape().tensors) {
      const auto from =
          std::find_if(whole.tensors.begin(), whole.tensors.end(), [&](const learn::Tensor& t) { return t.name == tensor.name; });
      check(from != whole.tensors.end(), "a stage's tensors are the model's");
      stage.pieces.push_back({tensor.offset, from->offset, tensor.count});
    }
    stage.source = std::make_unique<StageLearning>(std::move(learner));
  }
  return stages;
}

/// How the mini-batches of a run are made.
struct Batches {
  std::uint64_t samples = 0;  // of a mini-batch, which is one update
  std::uint64_t count = 0;
  std::uint64_t evaluate_every = 1;
};

/// pipedream with micro-batches updates after each of them.
Batches batches_of(const Job& job, const Material& material, const policy::StrategySpec& strategy, std::uint32_t micros) {
  Batches made;
  made.samples = strategy.kind == "pipedream" && strategy.knobs.micro_batches ? job.global_batch / micros : job.global_batch;
  const double epoch = static_cast<double>(material.epoch_samples);
  const auto total = std::max<std::uint64_t>(job.global_batch, static_cast<std::uint64_t>(std::llround(job.max_epochs * epoch)));
  made.count = std::max<std::uint64_t>(1, (total + made.samples / 2) / made.samples);  // whole ones: a part of one is another update
  made.evaluate_every = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(job.evaluate_every * epoch)) / made.samples);
  return made;
}

plan::Schedule schedule_of(const Job& job, const policy::StrategySpec& strategy, std::uint32_t micro_batches, const plan::Problem& problem,
                           const plan::Cut& cut) {
  double jitter = 0;
  for (const cluster::Node& node : job.cluster.nodes) jitter = std::max(jitter, node.jitter);
  plan::Schedule schedule = plan::make_schedule({strategy.kind, micro_batches, jitter}, problem, cut);
  if (strategy.knobs.without == policy::Off::predict) schedule.predicts = false;
  if (strategy.knobs.without == policy::Off::clipping) schedule.clips = false;
  if (strategy.knobs.without == policy::Off::soften) schedule.softens = false;
  if (strategy.knobs.without == policy::Off::defer) schedule.weights_apart = false;
  if (strategy.knobs.without == policy::Off::replan) schedule.replan_every = 0;
  return schedule;
}

/// The mathematics of a run. The whole model is kept to evaluate.
struct Model {
  std::unique_ptr<learn::Learner> whole;
  std::unique_ptr<sim::RealPipelineNumbers> numbers;
};

Result<Model> make_model(const Job& job, const Material& material, const SimulationOptions& options, const PipelinePlan& plan,
                         const plan::Schedule& schedule, const Batches& batches) {
  Model model;
  auto whole = learn::make_learner(job.model, material.data);
  if (!whole) return whole.error();
  model.whole = std::move(*whole);
  auto stages = stages_for(job, material, model.whole->shape(), plan.cut);
  if (!stages) return stages.error();
  std::vector<float> initial(model.whole->shape().values());
  model.whole->initialize(options.seed, initial);
  policy::ScheduleSpec rates = job.schedule;
  rates.lr = options.strategy.knobs.lr.value_or(rates.lr);
  sim::PipelineNumbersOptions numbers{
      .stages = std::move(*stages),
      .remake =
          [&job, &material, whole_model = model.whole.get()](const plan::Cut& cut) {
            auto made = stages_for(job, material, whole_model->shape(), cut);
            check(made.ok(), "a model that was cut once can be cut again");
            return std::move(*made);
          },
      .model_values = model.whole->shape().values(),
      .schedule = schedule,
      .rates = policy::Schedule(rates, job.global_batch, material.epoch_samples, batches.count * batches.samples),
      .optimizer = job.optimizer,
      .mini_batches = batches.count,
      .samples = batches.samples,
      .global_batch = job.global_batch,
      .epoch_samples = material.epoch_samples,
      .seed = options.seed,
      .evaluate_every = batches.evaluate_every,
      .evaluate = {}};
  numbers.optimizer.momentum = options.strategy.knobs.momentum.value_or(numbers.optimizer.momentum);
  for (auto& stage : numbers.stages) {
    for (const auto& piece : stage.pieces) {
      stage.values.resize(std::max<std::size_t>(stage.values.size(), piece.in_stage + piece.count));
      std::copy_n(initial.begin() + static_cast<std::ptrdiff_t>(piece.in_model), piece.count,
                  stage.values.begin() + static_cast<std::ptrdiff_t>(piece.in_stage));
    }
  }
  numbers.evaluate = [whole_model = model.whole.get()](std::span<const float> values) {
    const learn::StepResult result = at_border([&] { return whole_model->evaluate(values); });
    const double samples = static_cast<double>(result.samples);
    return sim::PipelineNumbers::Evaluation{true, static_cast<double>(result.correct) / samples, result.loss_sum / samples};
  };
  model.numbers = std::make_unique<sim::RealPipelineNumbers>(std::move(numbers));
  return model;
}

PipelineFigures figures_of(const PipelinePlan& plan, const sim::PipelineEnding& ending, const trace::Pipeline& seen, double samples) {
  PipelineFigures figures;
  const double ideal = plan.micro_batch / plan::cost_of(plan.problem, plan.cut).slot_s;
  figures.steady_samples_per_second = seen.updates_per_second() * samples;
  figures.ratio_to_ideal = figures.steady_samples_per_second / ideal;
  figures.utilization = seen.utilization();
  figures.bubble_share = 1 - figures.utilization;
  for (const double bytes : ending.peak_stash_bytes) figures.peak_stash_bytes += bytes;
  for (const trace::Pipeline::Stage& stage : seen.stages()) figures.max_delay = std::max(figures.max_delay, stage.most_late);
  figures.stages = seen.stages();
  figures.boxes = seen.boxes();
  figures.recuts = seen.recuts();
  return figures;
}

/// What a pipeline cannot do yet is refused, not passed over.
Outcome can_be_simulated(const Job& job, const SimulationOptions& options) {
  using cluster::FaultKind;
  for (const cluster::Fault& fault : job.cluster.faults)
    if (fault.kind != FaultKind::slow && fault.kind != FaultKind::pause)
      return bad_input(
          fmt::format("{}: cluster.fault: found one that a pipeline cannot have yet, at {:g} s on node \"{}\"; expected slow or "
                      "pause with {}",
                      job.file.string(), seconds(fault.at.time_since_epoch()), job.cluster.nodes[fault.node.value].name, options.label));
  if (job.max_seconds)
    return bad_input(fmt::format("{}: job.max_seconds: found {:g}, expected none with {}: a pipeline runs for job.max_epochs",
                                 job.file.string(), *job.max_seconds, options.label));
  const std::uint32_t micros = job.pipeline.micro_batches;
  if (micros > job.global_batch)
    return bad_input(
        fmt::format("{}: micro_batches: found {} with {}, expected at most {} (batch.global: a micro-batch has a sample at least)",
                    job.file.string(), micros, options.label, job.global_batch));
  if (options.strategy.kind == "pipedream" && options.strategy.knobs.micro_batches && job.global_batch % micros != 0)
    return bad_input(
        fmt::format("{}: micro_batches: found {} with {}, expected a number that divides batch.global, which is {}: each is an "
                    "update of its own",
                    job.file.string(), micros, options.label, job.global_batch));
  return Done{};
}

}  // namespace

bool is_pipeline(const policy::StrategySpec& strategy) {
  const auto names = plan::schedule_names();
  return std::find(names.begin(), names.end(), strategy.kind) != names.end();
}

std::vector<policy::KnobFault> pipeline_knob_faults(const policy::StrategySpec& strategy) {
  std::vector<policy::KnobFault> faults;
  std::vector<std::string_view> taken{"cut", "lr", "momentum"};
  if (strategy.kind != "naive-mp") taken.push_back("micro_batches");
  if (strategy.kind == "adapipe") taken.push_back("without");
  using Members = boost::describe::describe_members<policy::Knobs, boost::describe::mod_public>;
  boost::mp11::mp_for_each<Members>([&](auto member) {
    if (!(strategy.knobs.*member.pointer) || std::find(taken.begin(), taken.end(), member.name) != taken.end()) return;
    faults.push_back(
        {member.name, fmt::format("a knob that {} does not take", strategy.kind), fmt::format("one of {}", fmt::join(taken, ", "))});
  });
  using policy::Off;
  constexpr std::array<Off, 5> own{Off::predict, Off::clipping, Off::soften, Off::defer, Off::replan};
  if (strategy.kind == "adapipe" && strategy.knobs.without && std::find(own.begin(), own.end(), *strategy.knobs.without) == own.end())
    faults.push_back({"without", "a rule of another strategy", "one of predict, clipping, soften, defer, replan"});
  return faults;
}

Result<RunResult> simulate_pipeline(const Job& job, const Material& material, const SimulationOptions& options) {
  Job as_asked = job;
  as_asked.pipeline.micro_batches = options.strategy.knobs.micro_batches.value_or(job.pipeline.micro_batches);
  as_asked.pipeline.cut = options.strategy.knobs.cut.value_or(job.pipeline.cut);
  if (const Outcome possible = can_be_simulated(as_asked, options); !possible) return possible.error();
  // Whole mini-batches go through in one piece.
  if (options.strategy.kind == "naive-mp" || (options.strategy.kind == "pipedream" && !options.strategy.knobs.micro_batches))
    as_asked.pipeline.micro_batches = 1;
  auto plan = plan_pipeline(as_asked, material);
  if (!plan) return plan.error();
  const auto reschedule = [&job, &options, micro_batches = plan->micro_batches](const plan::Problem& problem, const plan::Cut& cut) {
    return schedule_of(job, options.strategy, micro_batches, problem, cut);
  };
  const plan::Schedule schedule = reschedule(plan->problem, plan->cut);
  const std::vector<double> memory = plan::memory_of(schedule, plan->problem, plan->cut);
  for (std::uint32_t s = 0; s < memory.size(); ++s)
    if (const double has = plan->problem.devices[plan->cut[s].device].memory_bytes; has > 0 && memory[s] > has)
      return does_not_fit(job, plan->problem, plan->cut[s], s, memory[s]);
  const Batches batches = batches_of(job, material, options.strategy, plan->micro_batches);

  sim::NoPipelineNumbers none;
  Model model;
  if (!job.timing_only) {
    auto made = make_model(job, material, options, *plan, schedule, batches);
    if (!made) return made.error();
    model = std::move(*made);
  }

  RunResult result;
  trace::Writer writer;
  trace::Pipeline seen(batches.count / 2 * schedule.micro_batches, (batches.count / 2 + 3) * schedule.micro_batches);
  Progress progress(options.progress, batches.count * batches.samples);
  std::vector<trace::Sink*> sinks{&writer, &result.summary, &seen, &progress};
  if (options.also != nullptr) sinks.push_back(options.also);
  trace::Tee tee(std::move(sinks));
  sim::PipelineWorld world({job.cluster, plan->problem, plan->cut, schedule, reschedule, batches.count, batches.samples, options.seed},
                           model.numbers ? static_cast<sim::PipelineNumbers&>(*model.numbers) : none, tee);
  const sim::PipelineEnding ending = world.run();
  result.ending.why = ending.diverged ? protocol::Ended::diverged : protocol::Ended::every_sample_counted;
  result.ending.ended = ending.ended;
  result.ending.bytes_pushed = ending.bytes;
  result.ending.updates = ending.mini_batches;
  result.ending.samples = ending.mini_batches * batches.samples;
  // To the nearest mini-batch.
  result.ending.closed_epochs = static_cast<std::uint32_t>((result.ending.samples + batches.samples / 2) / material.epoch_samples);
  result.label = options.label;
  result.seed = options.seed;
  result.trace_sha256 = writer.finish();
  for (const cluster::Node& node : job.cluster.nodes) result.sum_of_parts += node.samples_per_second;
  if (model.numbers) result.values = model.numbers->values();
  result.pipeline = figures_of(*plan, ending, seen, static_cast<double>(batches.samples));
  return result;
}

}  // namespace motley::app
