// `motley chief JOB` for a job that is a pipeline: the process that the stages connect to.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <memory>

#include "cli/chief_run.h"
#include "cli/commands.h"
#include "engine/pipeline_training.h"
#include "report/progress_lines.h"
#include "report/screen.h"
#include "runtime/checkpoint_state.h"
#include "runtime/pipeline_chief_process.h"
#include "runtime/sha256.h"

namespace motley::cli {
namespace {

/// One run of a pipeline's chief. Its members are created in this order.
class PipelineChiefRun {
 public:
  PipelineChiefRun(const ChiefArguments& arguments, const std::string& job_text, const config::Job& job)
      : arguments_(arguments), job_text_(job_text), job_(job), place_(arguments, job.name) {
    for (const cluster::Node& node : job_.cluster.nodes) names_.push_back(node.name);
  }

  int run();

 private:
  Outcome prepare();
  [[nodiscard]] runtime::PipelineChiefProcessOptions process_options();
  [[nodiscard]] runtime::PipelineChiefHooks hooks();
  void on_event(const trace::Event& event);
  Outcome open_endpoint();
  Outcome open_folder();
  void repaint();
  Result<runtime::EvaluationResult> evaluate(std::span<const float> values);
  [[nodiscard]] protocol::ChiefState state_after(std::uint64_t mini_batches, Duration trained) const;
  [[nodiscard]] Outcome fits(const protocol::ChiefState& found) const;
  Outcome save(const runtime::KeptModel& kept);
  void log(const std::string& sentence) { screen_ ? screen_->say(sentence) : fmt::print(stderr, "{}\n", sentence); }
  [[nodiscard]] std::uint64_t total_samples() const { return training_->batches.total; }

  const ChiefArguments& arguments_;
  const std::string& job_text_;
  const config::Job& job_;
  std::vector<std::string> names_;
  boost::asio::io_context event_loop_;
  engine::Material material_;
  std::optional<engine::PipelineTraining> training_;
  std::unique_ptr<learn::Learner> whole_;
  RunPlace place_;
  std::optional<runtime::RunToken> token_;  // made here, if the user gave none
  std::unique_ptr<engine::RunFolder> folder_;
  std::optional<trace::Pipeline> seen_;
  std::optional<report::Screen> screen_;
  std::optional<report::ProgressLines> progress_;
  std::unique_ptr<runtime::PipelineChiefProcess> pipeline_chief_;
  boost::asio::steady_timer painter_{event_loop_};
  boost::asio::signal_set signals_{event_loop_, SIGINT, SIGTERM};
  std::optional<Result<protocol::TrainingOutcome>> outcome_;
  bool interrupted_ = false;
  bool started_ = false;
};

Outcome PipelineChiefRun::prepare() {
  if (job_.timing_only)
    return bad_input(fmt::format("{}: model.kind: found \"none\", expected a model: a real cluster trains one", job_.file.string()));
  auto material = engine::load_material(job_);
  if (!material) return material.error();
  material_ = std::move(*material);
  auto training = engine::make_pipeline_training(job_, material_, job_.strategy, job_.strategy.kind);
  if (!training) return training.error();
  training_.emplace(std::move(*training));
  auto whole = learn::make_learner(job_.model, material_.data);
  if (!whole) return whole.error();
  whole_ = std::move(*whole);
  seen_.emplace(training_->lens());
  if (!arguments_.resume) return Done{};
  std::vector<std::string> words;
  const Outcome found = place_.find({whole_->shape(), engine::learning_sha256(job_text_), job_.optimizer.kind == OptimizerKind::adamw, 0,
                                     [this](const protocol::ChiefState& state) { return fits(state); }},
                                    words);
  if (!found) return found.error();
  for (const std::string& word : words) log(word);
  if (const auto& restored = place_.restored())
    log(fmt::format("going on from {}: {} of {} mini-batches; those since then are done again", restored->file.string(),
                    restored->chief.version.value, training_->batches.count));
  return Done{};
}

/// The state that save() writes.
protocol::ChiefState PipelineChiefRun::state_after(std::uint64_t mini_batches, Duration trained) const {
  protocol::ChiefState state;
  state.version = Version{mini_batches};
  state.counted.emplace(0, training_->outcome_of(mini_batches, material_.epoch_samples).samples);
  state.trained = trained;
  return state;
}

Outcome PipelineChiefRun::fits(const protocol::ChiefState& found) const {
  const std::uint64_t done = found.version.value;
  if (done == 0 || done > training_->batches.count)
    return bad_input(fmt::format("version: found {}, expected 1 to {} mini-batches", done, training_->batches.count));
  if (found.trained < Duration{0} || found.trained > protocol::longest_training)
    return bad_input(fmt::format("trained_ns: found {}, expected 0 to {}", found.trained.count(), protocol::longest_training.count()));
  if (runtime::chief_state_json(found) != runtime::chief_state_json(state_after(done, found.trained)))
    return bad_input(fmt::format("found another state than a pipeline has after {} mini-batches", done));
  return Done{};
}

Result<runtime::EvaluationResult> PipelineChiefRun::evaluate(std::span<const float> values) {
  try {
    const StepResult result = whole_->evaluate(values);
    const double samples = static_cast<double>(std::max<std::uint64_t>(result.samples, 1));
    return runtime::EvaluationResult{static_cast<double>(result.correct) / samples, result.loss_sum / samples};
  } catch (const std::exception& failure) {  // torch
    return world_failed(fmt::format("pipeline chief: evaluating the model failed: {}", failure.what()));
  }
}

Outcome PipelineChiefRun::save(const runtime::KeptModel& kept) {
  runtime::Saved saved;
  saved.chief = state_after(kept.mini_batches, kept.trained);
  saved.values = runtime::make_buffer(kept.model.values.size());
  std::copy(kept.model.values.begin(), kept.model.values.end(), saved.values->floats().begin());
  saved.moments.first = kept.model.first;
  saved.moments.second = kept.model.second;
  saved.moments.updates = kept.model.updates;
  if (const Outcome synced = folder_->sync(); !synced) return synced;
  return runtime::save_checkpoint(place_.checkpoints(), whole_->shape(), saved, engine::learning_sha256(job_text_));
}

/// Without the endpoint. Moves the restored model, if there is one, into the options.
runtime::PipelineChiefProcessOptions PipelineChiefRun::process_options() {
  runtime::PipelineChiefProcessOptions options;
  options.job = job_text_;
  options.cluster = job_.cluster;
  options.pipeline_chief.problem = training_->plan.problem;
  options.pipeline_chief.cut = training_->plan.cut;
  options.pipeline_chief.reschedule = training_->reschedule;
  options.pipeline_chief.repartition = training_->repartition;
  options.pipeline_chief.mini_batches = training_->batches.count;
  options.pipeline_chief.step_limit = job_.cluster.step_limit;
  if (auto& restored = place_.restored()) {
    options.pipeline_chief.first_mini = restored->chief.version.value;
    options.trained_before = restored->chief.trained;
    options.model.values = std::move(restored->initial_state.values);
    options.model.first = std::move(restored->initial_state.moments->first);
    options.model.second = std::move(restored->initial_state.moments->second);
    options.model.updates = restored->chief.version.value;
  } else {
    options.model.values.resize(whole_->shape().values());
    whole_->initialize(job_.seed, options.model.values);
  }
  options.second = job_.optimizer.kind == OptimizerKind::adamw;
  options.places = [this](const pipeline::Cut& cut) { return engine::stage_places(job_, material_, whole_->shape(), cut); };
  options.samples = training_->batches.samples;
  options.total_samples = training_->batches.total;
  options.evaluate_every = training_->batches.evaluate_every;
  options.checkpoint_every = arguments_.checkpoint_every;
  options.start_deadline = engine::start_patience;
  return options;
}

runtime::PipelineChiefHooks PipelineChiefRun::hooks() {
  runtime::PipelineChiefHooks hooks;
  hooks.evaluate = [this](std::span<const float> values) { return evaluate(values); };
  hooks.save = [this](const runtime::KeptModel& kept) { return save(kept); };
  hooks.saving = [this] { folder_->flush(); };
  hooks.saved = [this](const Outcome& how) { folder_->saved(how); };
  hooks.log = [this](const std::string& sentence) { log(sentence); };
  hooks.on_event = [this](const trace::Event& event) { on_event(event); };
  return hooks;
}

void PipelineChiefRun::on_event(const trace::Event& event) {
  if (!started_ && event.is<trace::PartBegan>()) {
    started_ = true;
    arguments_.tell_launcher("started");
  }
  folder_->on_event(event);
  seen_->on_event(event);
  screen_->on_event(event);
  progress_->on_event(event);
}

Outcome PipelineChiefRun::open_endpoint() {
  auto connection = chief_endpoint(arguments_, place_.path(), job_.slice_bytes);
  if (!connection) return connection.error();
  token_ = std::move(connection->made);
  runtime::PipelineChiefProcessOptions options = process_options();
  options.listen = connection->address;
  options.transport = connection->allowed;
  options.transport.job = runtime::sha256(job_text_);
  pipeline_chief_ = std::make_unique<runtime::PipelineChiefProcess>(event_loop_, std::move(options), hooks());
  screen_.emplace(report::ScreenOptions{fmt::format("{} {}", job_.name, job_.strategy.kind), total_samples(), training_->sum_of_parts,
                                        isatty(STDERR_FILENO) == 1, training_->batches.samples},
                  names_);
  progress_.emplace([this](const std::string& line) { arguments_.tell_launcher(line); }, names_);
  return pipeline_chief_->start([this](Result<protocol::TrainingOutcome> how) {
    outcome_ = std::move(how);
    event_loop_.stop();
  });
}

Outcome PipelineChiefRun::open_folder() {
  if (const Outcome open = place_.open(); !open) return open.error();
  const auto& restored = place_.restored();
  auto folder = engine::RunFolder::open(place_.path(), job_, job_text_, total_samples(),
                                        {arguments_.checkpoint_every, restored ? std::optional(restored->chief) : std::nullopt},
                                        arguments_.resume, [this](const std::string& sentence) { log(sentence); });
  if (!folder) return folder.error();
  folder_ = std::move(*folder);
  if (token_)
    if (const Outcome kept = token_->keep(); !kept) return kept.error();
  folder_->call_nodes(&names_);
  return Done{};
}

void PipelineChiefRun::repaint() {
  painter_.expires_after(std::chrono::milliseconds(250));
  painter_.async_wait([this](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    screen_->tick();
    progress_->tick();
    repaint();
  });
}

int PipelineChiefRun::run() {
  if (const Outcome prepared = prepare(); !prepared) return fail(prepared.error());
  if (const Outcome open = open_endpoint(); !open) return fail(open.error());
  if (const Outcome open = open_folder(); !open) return fail(open.error());
  arguments_.tell_launcher(fmt::format("listening {}", to_text(pipeline_chief_->address())));
  log(fmt::format("{}: listening on {}, run folder {}", job_.name, to_text(pipeline_chief_->address()), folder_->path().string()));
  if (token_) log(how_to_join("stage --node NAME", pipeline_chief_->address(), *token_));
  const auto on_signal = [this](const auto& self) -> void {
    signals_.async_wait([this, self](const boost::system::error_code& cancelled, int) {
      if (cancelled) return;
      if (interrupted_) _exit(ExitCode::stopped);
      interrupted_ = true;
      log("interrupted: saving the last whole model (once more: stop at once)");
      pipeline_chief_->interrupt();
      self(self);
    });
  };
  on_signal(on_signal);
  repaint();
  event_loop_.run();
  screen_->finish();
  if (!outcome_) return fail(world_failed("pipeline chief: the event loop stopped before training ended"));
  if (!*outcome_) return fail(outcome_->error());
  protocol::TrainingOutcome& outcome = **outcome_;
  outcome.closed_epochs = training_->outcome_of(outcome.updates, material_.epoch_samples).closed_epochs;
  const int code = conclude(arguments_, {job_, *folder_, names_, whole_->shape(), pipeline_chief_->model().values, outcome,
                                         training_->sum_of_parts, training_->figures(*seen_, pipeline_chief_->peak_stash_bytes())});
  pipeline_chief_.reset();
  return code;
}

}  // namespace

int run_pipeline_chief(const ChiefArguments& arguments, const std::string& job_text, const config::Job& job) {
  return PipelineChiefRun(arguments, job_text, job).run();
}

}  // namespace motley::cli
