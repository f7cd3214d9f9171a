#include "app/pipeline_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <cmath>

#include "app/pipeline.h"
#include "learn/stage_learner.h"
#include "sim/pipeline_numbers.h"
#include "sim/pipeline_world.h"
#include "trace/pipeline.h"

namespace motley::app {
namespace {

constexpr std::array<std::string_view, 5> taken{"cut", "micro_batches", "lr", "momentum", "without"};

class StageLearning final : public store::StageSource {
 public:
  explicit StageLearning(std::unique_ptr<learn::StageLearner> learner) : learner_(std::move(learner)) {}
  [[nodiscard]] const learn::ModelShape& shape() const { return learner_->shape(); }
  store::Loss forward(std::uint64_t micro, std::span<const float> values, std::span<const std::uint32_t> samples, const Activation& input,
                      Activation& output) override {
    const learn::StepResult result = learner_->forward(micro, values, samples, input, output);
    return {result.loss_sum, result.correct, result.samples};
  }
  void input_gradient(std::uint64_t micro, const Activation& output_gradient, Activation& input_gradient) override {
    learner_->input_gradient(micro, output_gradient, input_gradient);
  }
  void weight_gradient(std::uint64_t micro, double scale, std::span<float> out) override { learner_->weight_gradient(micro, scale, out); }

 private:
  std::unique_ptr<learn::StageLearner> learner_;
};

/// A tensor's place in the whole model and in its stage.
struct Piece {
  std::uint32_t stage = 0;
  std::uint64_t in_stage = 0;
  std::uint64_t in_model = 0;
  std::uint64_t count = 0;
};

std::vector<Piece> pieces_of(const learn::ModelShape& whole, const std::vector<const learn::ModelShape*>& stages) {
  std::vector<Piece> pieces;
  for (std::uint32_t s = 0; s < stages.size(); ++s)
    for (const learn::Tensor& tensor : stages[s]->tensors) {
      const auto from =
          std::find_if(whole.tensors.begin(), whole.tensors.end(), [&](const learn::Tensor& t) { return t.name == tensor.name; });
      pieces.push_back({s, tensor.offset, from->offset, tensor.count});
    }
  return pieces;
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
  made.count = total / made.samples;
  made.evaluate_every = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(job.evaluate_every * epoch)) / made.samples);
  return made;
}

plan::Schedule schedule_of(const Job& job, const policy::StrategySpec& strategy, const PipelinePlan& plan) {
  double jitter = 0;
  for (const cluster::Node& node : job.cluster.nodes) jitter = std::max(jitter, node.jitter);
  plan::Schedule schedule = plan::make_schedule({strategy.kind, plan.micro_batches, jitter}, plan.problem, plan.cut);
  if (strategy.knobs.without == policy::Off::predict) schedule.predicts = false;
  if (strategy.knobs.without == policy::Off::clipping) schedule.clips = false;
  if (strategy.knobs.without == policy::Off::soften) schedule.softens = false;
  if (strategy.knobs.without == policy::Off::defer) schedule.weights_apart = false;
  return schedule;
}

/// The mathematics of a run. The whole model is kept to evaluate.
struct Model {
  std::unique_ptr<learn::Learner> whole;
  std::vector<Piece> pieces;
  std::unique_ptr<sim::RealPipelineNumbers> numbers;
};

Result<Model> make_model(const Job& job, const Material& material, const SimulationOptions& options, const PipelinePlan& plan,
                         const plan::Schedule& schedule, const Batches& batches) {
  Model model;
  auto whole = learn::make_learner(job.model, material.data);
  if (!whole) return whole.error();
  model.whole = std::move(*whole);
  std::vector<std::uint32_t> first_blocks;
  for (const plan::Stage& stage : plan.cut) first_blocks.push_back(stage.first);
  auto stages = learn::make_stages(job.model, material.data, first_blocks);
  if (!stages) return stages.error();
  std::vector<const learn::ModelShape*> shapes;
  for (const auto& stage : *stages) shapes.push_back(&stage->shape());
  model.pieces = pieces_of(model.whole->shape(), shapes);

  std::vector<float> initial(model.whole->shape().values());
  model.whole->initialize(options.seed, initial);
  policy::ScheduleSpec rates = job.schedule;
  rates.lr = options.strategy.knobs.lr.value_or(rates.lr);
  sim::PipelineNumbersOptions numbers{
      .stages = {},
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
  for (auto& stage : *stages) {
    sim::PipelineNumbersOptions::Stage made;
    made.values.resize(stage->shape().values());
    made.parameters = stage->shape().parameters;
    made.source = std::make_unique<StageLearning>(std::move(stage));
    numbers.stages.push_back(std::move(made));
  }
  for (const Piece& piece : model.pieces)
    std::copy_n(initial.begin() + static_cast<std::ptrdiff_t>(piece.in_model), piece.count,
                numbers.stages[piece.stage].values.begin() + static_cast<std::ptrdiff_t>(piece.in_stage));
  numbers.evaluate = [whole_model = model.whole.get(), pieces = model.pieces](const std::vector<std::vector<float>>& values) {
    std::vector<float> all(whole_model->shape().values());
    for (const Piece& piece : pieces)
      std::copy_n(values[piece.stage].begin() + static_cast<std::ptrdiff_t>(piece.in_stage), piece.count,
                  all.begin() + static_cast<std::ptrdiff_t>(piece.in_model));
    const learn::StepResult result = whole_model->evaluate(all);
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
  return figures;
}

}  // namespace

bool is_pipeline(const policy::StrategySpec& strategy) {
  const auto names = plan::schedule_names();
  return std::find(names.begin(), names.end(), strategy.kind) != names.end();
}

std::vector<policy::KnobFault> pipeline_knob_faults(const policy::StrategySpec& strategy) {
  std::vector<policy::KnobFault> faults;
  using Members = boost::describe::describe_members<policy::Knobs, boost::describe::mod_public>;
  boost::mp11::mp_for_each<Members>([&](auto member) {
    if (!(strategy.knobs.*member.pointer) || std::find(taken.begin(), taken.end(), member.name) != taken.end()) return;
    faults.push_back(
        {member.name, fmt::format("a knob that {} does not take", strategy.kind), "one of cut, micro_batches, lr, momentum, without"});
  });
  return faults;
}

Result<RunResult> simulate_pipeline(const Job& job, const Material& material, const SimulationOptions& options) {
  Job as_asked = job;
  as_asked.pipeline.micro_batches = options.strategy.knobs.micro_batches.value_or(job.pipeline.micro_batches);
  as_asked.pipeline.cut = options.strategy.knobs.cut.value_or(job.pipeline.cut);
  // Whole mini-batches go through in one piece.
  if (options.strategy.kind == "naive-mp" || (options.strategy.kind == "pipedream" && !options.strategy.knobs.micro_batches))
    as_asked.pipeline.micro_batches = 1;
  auto plan = plan_pipeline(as_asked, material);
  if (!plan) return plan.error();
  const plan::Schedule schedule = schedule_of(job, options.strategy, *plan);
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
  const double length =
      static_cast<double>(batches.count * batches.samples) * plan::cost_of(plan->problem, plan->cut).slot_s / plan->micro_batch;
  trace::Pipeline seen(length / 2, length / 2 + 3 * length / static_cast<double>(batches.count));
  std::vector<trace::Sink*> sinks{&writer, &result.summary, &seen};
  if (options.also != nullptr) sinks.push_back(options.also);
  trace::Tee tee(std::move(sinks));
  sim::PipelineWorld world({job.cluster, plan->problem, plan->cut, schedule, batches.count, batches.samples, options.seed},
                           model.numbers ? static_cast<sim::PipelineNumbers&>(*model.numbers) : none, tee);
  const sim::PipelineEnding ending = world.run();
  result.ending.why = protocol::Ended::every_sample_counted;
  result.ending.ended = ending.ended;
  result.ending.bytes_pushed = ending.bytes;
  result.ending.updates = batches.count;
  result.ending.samples = batches.count * batches.samples;
  result.ending.closed_epochs = static_cast<std::uint32_t>(result.ending.samples / material.epoch_samples);
  result.label = options.label;
  result.seed = options.seed;
  result.trace_sha256 = writer.finish();
  for (const cluster::Node& node : job.cluster.nodes) result.sum_of_parts += node.samples_per_second;
  if (model.numbers) {
    result.values.resize(model.whole->shape().values());
    for (const Piece& piece : model.pieces)
      std::copy_n(model.numbers->values(piece.stage).begin() + static_cast<std::ptrdiff_t>(piece.in_stage), piece.count,
                  result.values.begin() + static_cast<std::ptrdiff_t>(piece.in_model));
  }
  result.pipeline = figures_of(*plan, ending, seen, static_cast<double>(batches.samples));
  return result;
}

}  // namespace motley::app
