// motley chief JOB --listen HOST:PORT: runs the chief of a cluster; workers connect to it.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "cli/chief_run.h"
#include "cli/commands.h"
#include "config/pipeline_strategy.h"
#include "engine/pipeline_training.h"
#include "engine/training.h"
#include "report/progress_lines.h"
#include "report/screen.h"
#include "runtime/chief_process.h"
#include "runtime/sha256.h"

namespace motley::cli {
namespace {

/// One run of a chief process; the members are declared in the order of construction.
class ChiefRun {
 public:
  ChiefRun(const ChiefArguments& arguments, std::string job_text, config::Job job)
      : arguments_(arguments), job_text_(std::move(job_text)), job_(std::move(job)), place_(arguments, job_.name) {}

  int run();

 private:
  Outcome prepare();
  Outcome open_endpoint();
  Outcome open_folder();
  void make_evaluator(const engine::Material& material);
  Result<runtime::EvaluationResult> evaluate(std::span<const float> values);
  void log(const std::string& sentence) { screen_ ? screen_->say(sentence) : fmt::print(stderr, "{}\n", sentence); }
  void repaint();
  int finish();

  const ChiefArguments& arguments_;
  std::string job_text_;
  config::Job job_;
  boost::asio::io_context event_loop_;
  std::optional<engine::Training> training_;
  RunPlace place_;
  std::optional<runtime::RunToken> token_;  // generated, because no token was given
  std::optional<protocol::Chief> machine_;
  std::unique_ptr<engine::RunFolder> folder_;
  std::optional<report::Screen> screen_;
  std::optional<report::ProgressLines> progress_;
  std::unique_ptr<learn::Learner> evaluator_;  // evaluates the model; none: training_->learning does
  std::unique_ptr<runtime::ChiefProcess> chief_;
  boost::asio::steady_timer painter_{event_loop_};
  boost::asio::signal_set signals_{event_loop_, SIGINT, SIGTERM};
  std::optional<Result<protocol::TrainingOutcome>> outcome_;
  bool interrupted_ = false;
  bool started_ = false;
};

Outcome ChiefRun::prepare() {
  const auto material = engine::load_material(job_);
  if (!material) return material.error();
  auto training = engine::make_training(job_, *material, job_.strategy);
  if (!training) return training.error();
  if (!training->learning)
    return bad_input(fmt::format("{}: model.kind: found \"none\", expected a model: a real cluster trains one", job_.file.string()));
  training_.emplace(std::move(*training));
  make_evaluator(*material);
  training_->chief.checkpoint_every = arguments_.checkpoint_every;
  training_->chief.start_deadline = engine::start_patience;

  machine_.emplace(training_->chief, std::move(training_->strategy), training_->schedule);
  if (!arguments_.resume) return Done{};
  std::vector<std::string> words;
  const Outcome found =
      place_.find({training_->learning->shape(), runtime::sha256_hex(job_text_), job_.optimizer.kind == OptimizerKind::adamw,
                   training_->schedule.most(), [this](const protocol::ChiefState& state) { return machine_->resume(state); }},
                  words);
  if (!found) return found.error();
  for (const std::string& word : words) log(word);
  if (place_.restored())
    log(fmt::format("going on from {}: version {}, {} of {} samples; later updates are computed again", place_.restored()->file.string(),
                    machine_->version().value, machine_->ledger().counted(), training_->chief.total_samples));
  return Done{};
}

namespace {

runtime::EvaluationResult evaluation(const StepResult& loss) {
  const double samples = static_cast<double>(std::max<std::uint64_t>(loss.samples, 1));
  return {static_cast<double>(loss.correct) / samples, loss.loss_sum / samples};
}

}  // namespace

/// Evaluates on a GPU where workers compute on GPUs and this machine has one.
void ChiefRun::make_evaluator(const engine::Material& material) {
  for (const cluster::Node& node : job_.cluster.nodes) {
    if (node.device != cluster::DeviceKind::cuda || node.device_index >= learn::gpus()) continue;
    auto learner = learn::make_learner(job_.model, material.data, {.cuda = true, .index = node.device_index});
    if (learner)
      evaluator_ = std::move(*learner);
    else
      log(fmt::format("the model is evaluated on the CPU: {}", learner.error().message));
    break;
  }
}

Result<runtime::EvaluationResult> ChiefRun::evaluate(std::span<const float> values) {
  if (evaluator_) try {
      return evaluation(evaluator_->evaluate(values));
    } catch (const std::exception& failure) {  // such as out of memory: the GPU is shared with the workers
      log(fmt::format("from now on the model is evaluated on the CPU: {}", failure.what()));
      evaluator_.reset();
    }
  try {
    return evaluation(training_->learning->evaluate(values));
  } catch (const std::exception& failure) {  // torch
    return world_failed(fmt::format("chief: evaluating the model failed: {}", failure.what()));
  }
}

Outcome ChiefRun::open_endpoint() {
  auto connection = chief_endpoint(arguments_, place_.path(), job_.slice_bytes);
  if (!connection) return connection.error();
  token_ = std::move(connection->made);

  runtime::ChiefProcessOptions options;
  options.listen = connection->address;
  options.transport = connection->allowed;
  options.transport.job = runtime::sha256(job_text_);
  options.job = job_text_;
  options.cluster = job_.cluster;
  options.layout = training_->layout;
  options.optimizer = job_.optimizer;
  options.store_threads = arguments_.store_threads;
  runtime::InitialState initial_state;
  if (auto& restored = place_.restored()) {
    options.trained_before = restored->chief.trained;
    initial_state = std::move(restored->initial_state);
  } else {
    initial_state.values.resize(training_->layout.values);
    training_->learning->initialize(job_.seed, initial_state.values);
  }
  options.chief = training_->chief;

  runtime::ChiefHooks hooks;
  hooks.evaluate = [this](std::span<const float> values) { return evaluate(values); };
  hooks.save = [this, hash = runtime::sha256_hex(job_text_)](const runtime::Saved& saved) {
    if (const Outcome synced = folder_->sync(); !synced) return synced;
    return runtime::save_checkpoint(place_.checkpoints(), training_->learning->shape(), saved, hash);
  };
  hooks.saved = [this](const Outcome& how) { folder_->saved(how); };
  hooks.saving = [this] { folder_->flush(); };
  hooks.log = [this](const std::string& sentence) { log(sentence); };
  hooks.on_event = [this](const trace::Event& event) {
    if (!started_ && event.is<trace::Released>()) {
      started_ = true;
      arguments_.tell_launcher("started");
    }
    folder_->on_event(event);
    screen_->on_event(event);
    progress_->on_event(event);
  };
  hooks.inputs = [this](std::span<const std::byte> input) { folder_->record_input(input); };
  chief_ = std::make_unique<runtime::ChiefProcess>(event_loop_, std::move(options), std::move(*machine_), std::move(initial_state),
                                                   std::move(hooks));
  screen_.emplace(report::ScreenOptions{fmt::format("{} {}", job_.name, job_.strategy.kind), training_->chief.total_samples,
                                        training_->sum_of_parts, isatty(STDERR_FILENO) == 1},
                  chief_->node_names());
  progress_.emplace([this](const std::string& line) { arguments_.tell_launcher(line); }, chief_->node_names());
  return chief_->start([this](Result<protocol::TrainingOutcome> how) {
    outcome_ = std::move(how);
    event_loop_.stop();
  });
}

void ChiefRun::repaint() {
  painter_.expires_after(std::chrono::milliseconds(250));
  painter_.async_wait([this](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    screen_->tick();
    progress_->tick();
    repaint();
  });
}

/// After listening: a chief that cannot listen leaves no folder behind.
Outcome ChiefRun::open_folder() {
  if (const Outcome open = place_.open(); !open) return open.error();
  const auto& restored = place_.restored();
  auto folder = engine::RunFolder::open(place_.path(), job_, job_text_, training_->chief.total_samples,
                                        {arguments_.checkpoint_every, restored ? std::optional(restored->chief) : std::nullopt},
                                        arguments_.resume, [this](const std::string& sentence) { log(sentence); });
  if (!folder) return folder.error();
  folder_ = std::move(*folder);
  if (token_)
    if (const Outcome kept = token_->keep(); !kept) return kept.error();
  folder_->call_nodes(&chief_->node_names());
  return Done{};
}

int ChiefRun::finish() {
  const runtime::SharedBuffer last = chief_->final_values();
  return conclude(arguments_, {job_, *folder_, chief_->node_names(), training_->learning->shape(),
                               last ? std::as_const(*last).floats() : std::span<const float>{}, **outcome_, training_->sum_of_parts});
}

int ChiefRun::run() {
  if (const Outcome prepared = prepare(); !prepared) return fail(prepared.error());
  if (const Outcome open = open_endpoint(); !open) return fail(open.error());
  if (const Outcome open = open_folder(); !open) return fail(open.error());
  arguments_.tell_launcher(fmt::format("listening {}", to_text(chief_->address())));
  log(fmt::format("{}: listening on {}, run folder {}", job_.name, to_text(chief_->address()), folder_->path().string()));
  if (token_) log(how_to_join("worker", chief_->address(), *token_));
  const auto on_signal = [this](const auto& self) -> void {
    signals_.async_wait([this, self](const boost::system::error_code& cancelled, int) {
      if (cancelled) return;
      if (interrupted_) _exit(ExitCode::stopped);
      interrupted_ = true;
      log("interrupted: saving a checkpoint (interrupt again to stop at once)");
      chief_->interrupt();
      self(self);
    });
  };
  on_signal(on_signal);
  repaint();
  event_loop_.run();
  screen_->finish();
  if (!outcome_) return fail(world_failed("chief: the event loop stopped before training ended"));
  if (!*outcome_) return fail(outcome_->error());
  const int code = finish();
  chief_.reset();
  return code;
}

int serve(const ChiefArguments& arguments) {
  if (arguments.launched) std::signal(SIGPIPE, SIG_IGN);  // a checkpoint must still be saved after the launcher was killed
  const auto text = arguments.job.resolve();
  if (!text) return fail(text.error());
  auto job = config::parse_job(*text, arguments.job.file);
  if (!job) return fail(job.error());
  if (config::is_pipeline(job->strategy)) return run_pipeline_chief(arguments, *text, *job);
  return ChiefRun(arguments, *text, std::move(*job)).run();
}

}  // namespace

void add_chief(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ChiefArguments>();
  CLI::App* command = app.add_subcommand("chief", "run the chief of a cluster: the first server, which also coordinates the workers");
  arguments->job.add_to(*command, true);
  arguments->connection.add_to(*command);
  arguments->connection.add_no_token_to(*command);
  command->add_option("--listen", arguments->listen, "HOST:PORT or unix:PATH; TCP needs a token, which is generated when none is given")
      ->capture_default_str();
  command->add_option("--out", arguments->out, "folder of the run (default: runs/JOB-TIME)");
  command->add_option("--checkpoint-every", arguments->checkpoint_every, "updates between checkpoints; 0: only when interrupted")
      ->capture_default_str();
  command->add_option("--store-threads", arguments->store_threads, "threads that update the model; 0: chosen automatically")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  CLI::Option* resume =
      command->add_flag("--resume", arguments->resume, "continue from the newest complete checkpoint in --out")->needs("--out");
  command->add_flag("--from-scratch", arguments->from_scratch, "with --resume: start from the beginning; the checkpoints are set aside")
      ->needs(resume);
  command->add_flag("--require-target", arguments->require_target, "exit with code 4 when the target accuracy is not reached");
  command->add_flag("--launched", arguments->launched)->group("");
  command->callback([arguments, &exit_code] { exit_code = serve(*arguments); });
}

}  // namespace motley::cli
