// InProcessCluster: a chief and some of its workers in one process, on one event loop. Workers of other processes may join.
#pragma once
#include <motley/objective.h>
#include <motley/session.h>
#include <motley/train.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/job.h"
#include "engine/training.h"
#include "library/objective_source.h"
#include "runtime/chief_process.h"
#include "runtime/temporary_folder.h"
#include "runtime/worker_process.h"

namespace motley::library {

/// The job as text, with the size of the objective in place of [model] and [data].
Result<std::string> resolve_job(const Job& job, const Objective& objective);

class InProcessCluster {
 public:
  /// `job` is what `job_text` says. Both references must outlive this object.
  InProcessCluster(const Session& session, const MakeObjective& make_objective, std::string job_text, config::Job job);

  /// Runs the training on the calling thread. `objective` belongs to the chief: it makes the initial model and evaluates.
  Result<Trained> run(Objective objective);

 private:
  struct LocalWorker {
    std::unique_ptr<runtime::WorkerProcess> process;
    std::optional<Outcome> ended;
  };

  Outcome check_job() const;
  Result<transport::Address> choose_address();
  Outcome start_chief(const transport::Address& address);
  void start_worker(const std::string& node);
  [[nodiscard]] Result<runtime::EvaluationResult> evaluate(std::span<const float> values);
  [[nodiscard]] std::uint32_t local_workers() const;
  [[nodiscard]] transport::Options transport_options() const;
  void log(const std::string& sentence) const;
  [[nodiscard]] bool all_workers_ended() const;
  [[nodiscard]] bool all_workers_failed() const;
  void stop_when_all_ended();
  [[nodiscard]] std::string failures_of_workers() const;
  [[nodiscard]] Result<Trained> result() const;

  const Session& session_;
  const MakeObjective& make_objective_;
  std::string job_text_;
  config::Job job_;
  boost::asio::io_context event_loop_;
  boost::asio::steady_timer grace_{event_loop_};
  runtime::TemporaryFolder socket_folder_;
  bool evaluates_ = false;
  std::unique_ptr<ObjectiveSource> objective_;  // the chief's; the evaluation thread's once the chief has started
  std::vector<Evaluation> evaluations_;
  std::optional<Result<protocol::TrainingOutcome>> outcome_;
  std::unique_ptr<runtime::ChiefProcess> chief_;
  std::vector<std::unique_ptr<LocalWorker>> workers_;
};

}  // namespace motley::library
