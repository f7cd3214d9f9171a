#include "engine/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/describe.hpp>
#include <chrono>
#include <fstream>
#include <iterator>

#include "cluster/spec.h"
#include "engine/results.h"
#include "engine/simulation.h"
#include "policy/decisions.h"
#include "report/json_text.h"
#include "report/page.h"
#include "runtime/checkpoint.h"
#include "runtime/checkpoint_state.h"
#include "store/atomic_file.h"
#include "trace/reading.h"

namespace motley::engine {
namespace {

namespace fs = std::filesystem;

constexpr Duration workers_every = from_seconds(5);

double wall_now_s() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "localhost";
}

template <class Enum>
report::EventNames::Name names_of() {
  return [](std::uint64_t number) {
    const char* name = boost::describe::enum_to_string(static_cast<Enum>(number), "");
    return *name == '\0' ? fmt::format("{}", number) : std::string(name);
  };
}

/// Two lines: updates between checkpoints; the chief's state as JSON, or "-" for the initial state.
fs::path incarnation_file(const fs::path& folder, std::uint32_t number) { return folder / fmt::format("inputs.{}.began", number); }

/// The events of a run up to the version from which it resumes; later ones happen again.
Result<trace::RecordedUntil> recorded_until(const fs::path& path, Version version) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto events = trace::read_events(std::as_bytes(std::span(bytes)));
  if (!events)
    return bad_input(
        fmt::format("{} cannot be continued: {}; resume with the version of motley that wrote it, or move the file away "
                    "(the run's report then lacks what it holds)",
                    path.string(), events.error().message));
  return trace::events_until(*events, version, static_cast<std::uint8_t>(protocol::LeaveReason::connection_lost));
}

Outcome write_trace(const fs::path& path, const std::vector<trace::Event>& events) {
  std::string bytes;
  trace::Writer writer([&](std::span<const std::byte> block) { bytes.append(reinterpret_cast<const char*>(block.data()), block.size()); });
  for (const trace::Event& event : events) writer.on_event(event);
  writer.flush();
  return store::write_atomically(path, bytes);
}

}  // namespace

fs::path new_run_folder(const std::string& name) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  fs::path folder = fs::path("runs") / fmt::format("{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(now));
  for (int n = 2; fs::exists(folder); ++n) folder = fs::path("runs") / fmt::format("{}-{:%Y%m%d-%H%M%S}-{}", name, fmt::localtime(now), n);
  return folder;
}

Outcome is_free_for_a_run(const fs::path& folder) {
  if (fs::exists(inputs_of_incarnation(folder, 0)))
    return bad_input(
        fmt::format("--out {}: found a run there already, expected an empty or missing folder; resume it with --resume, or "
                    "choose another",
                    folder.string()));
  const auto files = runtime::checkpoint_files(folder / "checkpoints");
  if (!files) return files.error();
  const auto is_checkpoint = [](const fs::path& file) { return file.has_extension(); };
  const auto checkpoints = std::count_if(files->begin(), files->end(), is_checkpoint);
  if (checkpoints == 0) return Done{};
  return bad_input(fmt::format(
      "--out {}: found {} checkpoint{} of another run in {}, the newest is {}, expected none: a new run's would be mixed with "
      "them; nothing was changed. Resume from them with --resume, start from scratch with --resume --from-scratch (they are set aside, "
      "not deleted), or choose another folder",
      folder.string(), checkpoints, checkpoints == 1 ? "" : "s", (folder / "checkpoints").string(),
      std::find_if(files->begin(), files->end(), is_checkpoint)->filename().string()));
}

Outcome write_run_job(const fs::path& folder, const std::string& job_text) {
  if (const Outcome free = is_free_for_a_run(folder); !free) return free;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed || !store::write_atomically(folder / "job.toml", job_text))
    return bad_input(
        fmt::format("the run's folder {} cannot be written; expected a writable place (choose one with --out)", folder.string()));
  return Done{};
}

Outcome rewrite_run_job(const fs::path& folder, const std::string& job_text) {
  return store::write_atomically(folder / "job.toml", job_text);
}

fs::path inputs_of_incarnation(const fs::path& folder, std::uint32_t number) { return folder / fmt::format("inputs.{}.bin", number); }

Result<IncarnationStart> incarnation_start(const fs::path& folder, std::uint32_t number) {
  const fs::path path = incarnation_file(folder, number);
  std::ifstream file(path);
  IncarnationStart began;
  std::string state;
  if (!(file >> began.checkpoint_every) || !std::getline(file, state) || !std::getline(file, state))
    return bad_input(
        fmt::format("{}: found no initial state of an incarnation, expected the file that `motley chief` writes beside inputs.{}.bin",
                    path.string(), number));
  if (state == "-") return began;
  auto read = runtime::read_chief_state(state);
  if (!read) return bad_input(fmt::format("{}: {}", path.string(), read.error().message));
  began.state = std::move(*read);
  return began;
}

Result<std::unique_ptr<RunFolder>> RunFolder::open(const fs::path& folder, const config::Job& job, const std::string& job_text,
                                                   std::uint64_t total_samples, const IncarnationStart& began, bool resumes,
                                                   std::function<void(const std::string&)> tell) {
  if (!resumes)
    if (const Outcome written = write_run_job(folder, job_text); !written) return written.error();
  auto events = report::EventFile::open(folder, wall_now_s(), host_name());
  if (!events) return events.error();
  std::uint32_t incarnation = 0;
  while (fs::exists(inputs_of_incarnation(folder, incarnation))) ++incarnation;
  const std::string initial_state =
      fmt::format("{}\n{}\n", began.checkpoint_every, began.state ? runtime::chief_state_json(*began.state) : "-");
  if (const Outcome written = store::write_atomically(incarnation_file(folder, incarnation), initial_state); !written)
    return written.error();
  const Result<trace::RecordedUntil> recorded =
      began.state ? recorded_until(folder / "trace.bin", began.state->version) : trace::RecordedUntil{};
  if (!recorded) return recorded.error();
  if (const Outcome written = write_trace(folder / "trace.bin", recorded->events); !written) return written.error();
  for (const char* older : {"result.json", "report.html"}) {  // of an earlier incarnation, in case this one fails to write its own
    std::error_code ignored;
    fs::remove(folder / older, ignored);
  }
  std::unique_ptr<RunFolder> made(new RunFolder(folder, job, total_samples, std::move(*events), incarnation, std::move(tell)));
  if (!recorded->whole)
    made->errors_.lacks("trace.bin", fmt::format("lacks updates before version {}, from which this run resumes; the trace, the report and "
                                                 "sums over them lack them, too",
                                                 began.state->version.value));
  made->replay(recorded->events);
  return made;
}

/// Passes earlier events to every sink but the trace file, which has them.
void RunFolder::replay(const std::vector<trace::Event>& events) {
  replaying_ = true;
  for (const trace::Event& event : events) {
    writer_.on_event(event);
    summary_.on_event(event);
    history_.on_event(event);
    state_timelines_.on_event(event);
    timeline_.on_event(event);
    chrome_.on_event(event);
  }
  writer_.flush();
  replaying_ = false;
}

void RunFolder::flush() {
  writer_.flush();
  trace_file_.flush();
  inputs_file_.flush();
}

RunFolder::RunFolder(fs::path path, const config::Job& job, std::uint64_t total_samples, report::EventFile events,
                     std::uint32_t incarnation, std::function<void(const std::string&)> tell)
    : path_(std::move(path)),
      errors_(std::move(tell)),
      metrics_file_(path_ / "metrics.jsonl", report::AppendFile::Begin::at_end, errors_),
      trace_file_(path_ / "trace.bin", report::AppendFile::Begin::at_end, errors_),
      chrome_file_(path_ / "trace.json", report::AppendFile::Begin::anew, errors_),
      inputs_file_(inputs_of_incarnation(path_, incarnation), report::AppendFile::Begin::anew, errors_),
      writer_([this](std::span<const std::byte> block) {
        if (!replaying_) trace_file_.write(block);
      }),
      timeline_(timeline_window(job, total_samples)),
      metrics_(
          [this](std::string_view line) {
            metrics_file_.write(line);
            metrics_file_.flush();
          },
          names(), workers_every),
      chrome_([this](std::string_view text) { chrome_file_.write(text); }, names()),
      events_(std::move(events)),
      board_(events_, wall_now_s()) {}

report::EventNames RunFolder::names() const {
  report::EventNames names;
  names.node = [this](std::uint64_t node) {
    return node_names_ != nullptr && node < node_names_->size() ? (*node_names_)[node] : fmt::format("{}", node);
  };
  names.left = names_of<protocol::LeaveReason>();
  names.decided = names_of<policy::Why>();
  names.finished = names_of<protocol::EndReason>();
  return names;
}

void RunFolder::on_event(const trace::Event& event) {
  writer_.on_event(event);
  summary_.on_event(event);
  history_.on_event(event);
  state_timelines_.on_event(event);
  timeline_.on_event(event);
  metrics_.on_event(event);
  chrome_.on_event(event);
  board_.on_event(event);
}

void RunFolder::record_input(std::span<const std::byte> input) { inputs_file_.write(input); }

Outcome RunFolder::sync() const {
  if (const Outcome synced = trace_file_.sync(); !synced) return synced.error();
  return inputs_file_.sync();
}

void RunFolder::saved(const Outcome& how) { how ? errors_.mended("checkpoints") : errors_.failed("checkpoints", how.error().message); }

RunResult RunFolder::finish(const config::Job& job, const std::vector<std::string>& nodes, const protocol::TrainingOutcome& outcome,
                            double sum_of_parts, const std::string& command, std::optional<PipelineFigures> pipeline) {
  const config::Job seen = with_unlisted_nodes(job, nodes);
  RunResult result;
  result.label = job.strategy.kind;
  result.seed = job.seed;
  result.outcome = outcome;
  result.trace_sha256 = writer_.finish();
  result.summary = std::move(summary_);
  result.history = std::move(history_);
  result.state_timelines = std::move(state_timelines_);
  result.timeline = timeline_.lanes();
  result.sum_of_parts = sum_of_parts;
  result.pipeline = std::move(pipeline);
  chrome_.finish();
  for (report::AppendFile* file : {&metrics_file_, &trace_file_, &chrome_file_, &inputs_file_}) file->flush();
  const auto require = [&](const std::string& file, const Outcome& written) {
    if (!written) errors_.failed(file, written.error().message);
  };
  require(events_.path().filename().string(), events_.close());
  const report::Comparison table = comparison(seen, {result}, {job.seed}, command);
  require("report.html", store::write_atomically(path_ / "report.html", report::page(table)));
  require("result.json", store::write_atomically(path_ / "result.json", report::json_text(run_json(seen, result)) + "\n"));
  return result;
}

}  // namespace motley::engine
