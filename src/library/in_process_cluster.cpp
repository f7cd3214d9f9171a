#include "library/in_process_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "engine/results.h"
#include "engine/run_folder.h"
#include "runtime/sha256.h"

namespace motley::library {
namespace {

constexpr Duration grace = from_seconds(5);  // for local workers to end after the chief, as the launcher grants it to processes

}  // namespace

Result<std::string> resolve_job(const Job& job, const Objective& objective) {
  std::vector<std::string> overrides = job.overrides;
  overrides.emplace_back("model.kind=none");
  overrides.push_back(fmt::format("model.values={}", objective.parameters));
  overrides.push_back(fmt::format("data.samples={}", objective.samples));
  return config::resolve_job_text(job.text, job.name, overrides, job.strategy.empty() ? std::nullopt : std::optional(job.strategy),
                                  job.seed);
}

InProcessCluster::InProcessCluster(const Session& session, const MakeObjective& make_objective, std::string job_text, config::Job job)
    : session_(session), make_objective_(make_objective), job_text_(std::move(job_text)), job_(std::move(job)) {}

void InProcessCluster::log(const std::string& sentence) const {
  if (session_.log) session_.log(sentence);
}

/// Faults that end or stop a process would end or stop this one.
Outcome InProcessCluster::check_job() const {
  if (job_.cluster.servers != 1)
    return bad_input(fmt::format("{}: cluster.server.count: found {}, expected 1: the chief of a program is the only server", job_.name,
                                 job_.cluster.servers));
  for (const cluster::Fault& fault : job_.cluster.faults)
    if (fault.kind != cluster::FaultKind::slow && fault.kind != cluster::FaultKind::hang)
      return bad_input(
          fmt::format("{}: cluster.fault: found a fault that ends, stops or starts a process, expected slow or hang: the workers of a "
                      "program are threads",
                      job_.name));
  return Done{};
}

std::uint32_t InProcessCluster::local_workers() const {
  const auto all = static_cast<std::uint32_t>(job_.cluster.nodes.size());
  return std::min(all, session_.local_workers.value_or(session_.listen.empty() ? all : 1));
}

transport::Options InProcessCluster::transport_options() const {
  transport::Options options;
  options.token = session_.token;
  options.slice_bytes = job_.slice_bytes;
  options.window_bytes = std::max<std::size_t>(options.window_bytes, 4 * job_.slice_bytes);
  return options;
}

Result<transport::Address> InProcessCluster::choose_address() {
  if (session_.listen.empty()) {
    auto folder = runtime::TemporaryFolder::make("motley-library", "sockets");
    if (!folder) return folder.error();
    socket_folder_ = std::move(*folder);
    return transport::Address(transport::UnixAddress{(socket_folder_.path() / "chief").string()});
  }
  auto address = transport::parse_address(session_.listen);
  if (address && std::holds_alternative<transport::TcpAddress>(*address) && session_.token.empty())
    return bad_input(
        fmt::format("--listen {}: found no token, and other users of this machine reach a TCP port; expected --token-file or "
                    "MOTLEY_TOKEN, or --listen unix:PATH",
                    session_.listen));
  return address;
}

Result<runtime::EvaluationResult> InProcessCluster::evaluate(std::span<const float> values) {
  try {
    const StepResult result = objective_->evaluate(values);
    const double samples = static_cast<double>(std::max<std::uint64_t>(result.samples, 1));
    return runtime::EvaluationResult{static_cast<double>(result.correct) / samples, result.loss_sum / samples};
  } catch (const std::exception& failure) {
    return world_failed(failure.what());
  }
}

Outcome InProcessCluster::start_chief(const transport::Address& address) {
  const auto material = engine::load_material(job_);
  if (!material) return material.error();
  auto training = engine::make_training(job_, *material, job_.strategy);
  if (!training) return training.error();
  training->chief.start_deadline = engine::start_patience;

  runtime::ChiefProcessOptions options;
  options.listen = address;
  options.transport = transport_options();
  options.transport.job = runtime::sha256(job_text_);
  options.job = job_text_;
  options.cluster = job_.cluster;
  options.chief = training->chief;
  options.layout = training->layout;
  options.optimizer = job_.optimizer;
  runtime::InitialState initial_state;
  initial_state.values.resize(training->layout.values);
  try {
    objective_->initialize(job_.seed, initial_state.values);
  } catch (const std::exception& failure) {
    return bad_input(failure.what());
  }

  runtime::ChiefHooks hooks;
  if (evaluates_) hooks.evaluate = [this](std::span<const float> values) { return evaluate(values); };
  hooks.log = [this](const std::string& sentence) { log(sentence); };
  hooks.on_event = [this](const trace::Event& event) {
    const auto* evaluation = event.as<trace::Evaluated>();
    if (evaluation == nullptr || !evaluates_) return;
    evaluations_.push_back(
        {.seconds = seconds(event.at), .samples = evaluation->samples, .accuracy = evaluation->accuracy, .loss = evaluation->loss});
  };
  chief_ = std::make_unique<runtime::ChiefProcess>(event_loop_, std::move(options),
                                                   protocol::Chief(training->chief, std::move(training->strategy), training->schedule),
                                                   std::move(initial_state), std::move(hooks));
  return chief_->start([this](Result<protocol::TrainingOutcome> outcome) {
    outcome_ = std::move(outcome);
    grace_.expires_after(grace);
    grace_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) event_loop_.stop();
    });
    stop_when_all_ended();
  });
}

void InProcessCluster::start_worker(const std::string& node) {
  runtime::WorkerProcessOptions options;
  options.chief = chief_->address();
  options.transport = transport_options();
  options.node = node;
  auto worker = std::make_unique<LocalWorker>();
  worker->process = std::make_unique<runtime::WorkerProcess>(
      event_loop_, std::move(options),
      [this, node](const std::string& job) -> Result<runtime::WorkerSetup> {
        auto program = program_source(make_objective_);
        if (!program) return program.error();
        return engine::prepare_worker(job, node, std::move(*program));
      },
      [this, node](const std::string& sentence) { log(fmt::format("{}: {}", node, sentence)); });
  LocalWorker& started = *workers_.emplace_back(std::move(worker));
  started.process->start([this, &started, node](Outcome ended) {
    if (!ended) log(fmt::format("{}: {}", node, ended.error().message));
    started.ended = std::move(ended);
    if (session_.listen.empty() && all_workers_failed() && !outcome_) chief_->interrupt();  // no further worker can join
    stop_when_all_ended();
  });
}

bool InProcessCluster::all_workers_ended() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->ended.has_value(); });
}

bool InProcessCluster::all_workers_failed() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->ended && !*worker->ended; });
}

void InProcessCluster::stop_when_all_ended() {
  if (outcome_ && all_workers_ended()) event_loop_.stop();
}

std::string InProcessCluster::failures_of_workers() const {
  std::string text;
  for (const auto& worker : workers_)
    if (worker->ended && !*worker->ended) text += "; " + worker->ended->error().message;
  return text;
}

Result<Trained> InProcessCluster::result() const {
  if (!outcome_) return world_failed("the event loop stopped before training ended");
  if (!*outcome_) return outcome_->error();
  const protocol::TrainingOutcome& outcome = **outcome_;
  const bool workers_failed = outcome.why == protocol::EndReason::interrupted && session_.listen.empty() && all_workers_failed();
  const auto why = workers_failed ? protocol::EndReason::nobody_left : outcome.why;
  if (engine::failed(why))
    return world_failed(fmt::format("{}: training failed after {:.1f} s: {}{}", job_.name, seconds(outcome.ended),
                                    engine::ended_sentence(why), failures_of_workers()));
  Trained trained;
  if (const runtime::SharedBuffer last = chief_->final_values()) {
    const auto values = std::as_const(*last).floats();
    trained.values.assign(values.begin(), values.end());
  }
  trained.evaluations = evaluations_;
  trained.updates = outcome.updates;
  trained.samples = outcome.samples;
  trained.seconds = seconds(outcome.ended);
  trained.stopped = outcome.why == protocol::EndReason::interrupted;
  return trained;
}

Result<Trained> InProcessCluster::run(Objective objective) {
  if (const Outcome good = check_job(); !good) return good.error();
  const auto address = choose_address();
  if (!address) return address.error();
  evaluates_ = static_cast<bool>(objective.evaluate);
  objective_ = std::make_unique<ObjectiveSource>(std::move(objective));
  if (const Outcome started = start_chief(*address); !started) return started.error();
  if (!session_.listen.empty()) log(fmt::format("{}: listening on {}", job_.name, to_text(chief_->address())));
  for (std::uint32_t n = 0; n < local_workers(); ++n) start_worker(job_.cluster.nodes[n].name);
  const std::stop_callback on_stop(session_.stop, [this] { boost::asio::post(event_loop_, [this] { chief_->interrupt(); }); });
  event_loop_.run();
  return result();
}

}  // namespace motley::library
