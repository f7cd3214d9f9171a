// RunFolder: the folder of a real run, written while it runs, with its results at the end.
//
//   job.toml             the resolved job                        model.safetensors   the final model
//   metrics.jsonl        evaluations, members, speeds            result.json         what --json prints
//   trace.bin            every event (trace/record.h)            report.html         the same for people
//   trace.json           for ui.perfetto.dev                     checkpoints/        checkpoint.h
//   events.out.tfevents  for TensorBoard                         inputs.N.bin        inputs of incarnation N of the chief, for `motley
//   replay`
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/job.h"
#include "engine/run_result.h"
#include "protocol/chief.h"
#include "report/append_file.h"
#include "report/chrome_trace.h"
#include "report/metrics.h"
#include "report/tensorboard.h"
#include "trace/run_history.h"
#include "trace/sinks.h"
#include "trace/state_timelines.h"
#include "trace/summary.h"
#include "trace/timeline.h"

namespace motley::engine {

/// runs/NAME-TIME
[[nodiscard]] std::filesystem::path new_run_folder(const std::string& name);

/// The initial state of one incarnation of a run's chief, for replay.
struct IncarnationStart {
  std::uint64_t checkpoint_every = 0;
  std::optional<protocol::ChiefState> state;  // none: training began with it
};

/// Refuses a folder that has a recording or checkpoints of an older run. Changes nothing.
Outcome is_free_for_a_run(const std::filesystem::path& folder);

/// Makes the folder and writes its job.toml, before any process of the run is started. Refuses what is_free_for_a_run() does.
Outcome write_run_job(const std::filesystem::path& folder, const std::string& job_text);

/// The same for a run that is resumed.
Outcome rewrite_run_job(const std::filesystem::path& folder, const std::string& job_text);

class RunFolder : public trace::Sink {
 public:
  /// Makes the folder when it is missing; a resumed run continues its files.
  /// `tell` receives a sentence for each file that cannot be written, once.
  static Result<std::unique_ptr<RunFolder>> open(const std::filesystem::path& folder, const config::Job& job, const std::string& job_text,
                                                 std::uint64_t total_samples, const IncarnationStart& began, bool resumes,
                                                 std::function<void(const std::string&)> tell);

  void on_event(const trace::Event& event) override;
  void record_input(std::span<const std::byte> input);
  /// Hands all events and inputs so far to the operating system: they survive a killed process.
  void flush();
  /// Waits until flushed data is on the disk. May be called from another thread.
  Outcome sync() const;
  /// Reports the result of saving a checkpoint; a later success cancels an earlier failure.
  void saved(const Outcome& how);
  /// Writes results and report. `nodes`: names by index, those of the job first.
  RunResult finish(const config::Job& job, const std::vector<std::string>& nodes, const protocol::TrainingOutcome& outcome,
                   double sum_of_parts, const std::string& command, std::optional<PipelineFigures> pipeline = {});

  /// Files that are missing or incomplete.
  [[nodiscard]] report::WriteErrors& errors() { return errors_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void call_nodes(const std::vector<std::string>* names) { node_names_ = names; }

 private:
  RunFolder(std::filesystem::path path, const config::Job& job, std::uint64_t total_samples, report::EventFile events,
            std::uint32_t incarnation, std::function<void(const std::string&)> tell);
  [[nodiscard]] report::EventNames names() const;
  void replay(const std::vector<trace::Event>& events);

  std::filesystem::path path_;
  const std::vector<std::string>* node_names_ = nullptr;
  report::WriteErrors errors_;
  report::AppendFile metrics_file_, trace_file_, chrome_file_, inputs_file_;
  bool replaying_ = false;
  trace::Writer writer_;
  trace::Summary summary_;
  trace::RunHistory history_;
  trace::StateTimelines state_timelines_;
  trace::Timeline timeline_;
  report::Metrics metrics_;
  report::ChromeTrace chrome_;
  report::EventFile events_;
  report::TensorBoard board_;
};

/// How long a real chief waits for the quorum: processes load libraries and data first.
inline constexpr Duration start_patience = from_seconds(30);

/// The initial state of incarnation `number` of the chief of the run in `folder`, and the file of its inputs.
Result<IncarnationStart> incarnation_start(const std::filesystem::path& folder, std::uint32_t number);
[[nodiscard]] std::filesystem::path inputs_of_incarnation(const std::filesystem::path& folder, std::uint32_t number);

}  // namespace motley::engine
