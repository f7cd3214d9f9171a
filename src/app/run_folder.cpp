#include "app/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/describe.hpp>
#include <chrono>
#include <fstream>
#include <iterator>
#include <set>

#include "app/checkpoint_state.h"
#include "app/json_text.h"
#include "app/results.h"
#include "app/simulation.h"
#include "cluster/spec.h"
#include "policy/decisions.h"
#include "report/page.h"

namespace motley::app {
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

Outcome write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file.good()) return world_failed(fmt::format("{}: cannot be written; is the disk full?", path.string()));
  return Done{};
}

/// Two lines: updates between checkpoints; the chief's state as JSON, or "-" for the beginning.
fs::path life_file(const fs::path& folder, std::uint32_t number) { return folder / fmt::format("inputs.{}.began", number); }

/// What a run has told up to `version`, which it goes on from. What came after is lived again; evaluations of what came before are kept.
/// The members of then are gone: they leave at the end of it.
std::vector<trace::Event> events_until(const fs::path& path, Version version) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<trace::Event> events;
  std::vector<trace::Event> late;
  std::set<WorkerId> here;
  bool reached = version == Version{};
  for (std::size_t at = 0; at + trace::record_bytes <= bytes.size(); at += trace::record_bytes) {
    const auto record = std::as_bytes(std::span(bytes)).subspan(at).first<trace::record_bytes>();
    const auto event = trace::read_record(record);
    if (!event) break;
    if (reached) {
      if (event->kind == trace::Kind::evaluated && event->version <= version) late.push_back(*event);
      continue;
    }
    events.push_back(*event);
    if (event->kind == trace::Kind::joined) here.insert(event->worker);
    if (event->kind == trace::Kind::left) here.erase(event->worker);
    reached = event->kind == trace::Kind::applied && event->version == version;
  }
  if (!reached) return {};
  const Instant end = events.empty() ? Instant{} : events.back().at;
  events.insert(events.end(), late.begin(), late.end());
  for (const WorkerId worker : here)
    events.push_back(
        {.at = end, .kind = trace::Kind::left, .why = static_cast<std::uint8_t>(protocol::Gone::connection_lost), .worker = worker});
  return events;
}

/// Whoever is killed meanwhile leaves the old file or the new one.
Outcome write_trace(const fs::path& path, const std::vector<trace::Event>& events) {
  std::string bytes(events.size() * trace::record_bytes, '\0');
  const auto out = std::as_writable_bytes(std::span(bytes));
  for (std::size_t i = 0; i < events.size(); ++i)
    trace::write_record(events[i], out.subspan(i * trace::record_bytes).first<trace::record_bytes>());
  const fs::path beside = path.string() + ".new";
  if (const Outcome written = write_text(beside, bytes); !written) return written;
  std::error_code failed;
  fs::rename(beside, path, failed);
  if (failed) return world_failed(fmt::format("{}: {}", path.string(), failed.message()));
  return Done{};
}

}  // namespace

fs::path new_run_folder(const std::string& name) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  fs::path folder = fs::path("runs") / fmt::format("{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(now));
  for (int n = 2; fs::exists(folder); ++n) folder = fs::path("runs") / fmt::format("{}-{:%Y%m%d-%H%M%S}-{}", name, fmt::localtime(now), n);
  return folder;
}

Outcome write_run_job(const fs::path& folder, const std::string& job_text) {
  if (fs::exists(inputs_of_life(folder, 0)))
    return bad_input(
        fmt::format("--out {}: found a run there already, expected an empty or missing folder; go on with it by --resume, or "
                    "choose another",
                    folder.string()));
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed || !write_text(folder / "job.toml", job_text))
    return bad_input(
        fmt::format("the run's folder {} cannot be written; expected a writable place (choose one with --out)", folder.string()));
  return Done{};
}

Outcome rewrite_run_job(const fs::path& folder, const std::string& job_text) { return write_text(folder / "job.toml", job_text); }

fs::path inputs_of_life(const fs::path& folder, std::uint32_t number) { return folder / fmt::format("inputs.{}.bin", number); }

Result<LifeBegan> beginning_of_life(const fs::path& folder, std::uint32_t number) {
  const fs::path path = life_file(folder, number);
  std::ifstream file(path);
  LifeBegan began;
  std::string state;
  if (!(file >> began.checkpoint_every) || !std::getline(file, state) || !std::getline(file, state))
    return bad_input(
        fmt::format("{}: found no beginning of a life, expected what `motley serve` writes beside inputs.{}.bin", path.string(), number));
  if (state == "-") return began;
  auto read = read_chief_state(state);
  if (!read) return bad_input(fmt::format("{}: {}", path.string(), read.error().message));
  began.state = std::move(*read);
  return began;
}

Result<std::unique_ptr<RunFolder>> RunFolder::open(const fs::path& folder, const Job& job, const std::string& job_text,
                                                   std::uint64_t total_samples, const LifeBegan& began, bool resumes) {
  if (!resumes)
    if (const Outcome written = write_run_job(folder, job_text); !written) return written.error();
  auto events = report::EventFile::open(folder, wall_now_s(), host_name());
  if (!events) return events.error();
  std::uint32_t life = 0;
  while (fs::exists(inputs_of_life(folder, life))) ++life;
  const std::string beginning = fmt::format("{}\n{}\n", began.checkpoint_every, began.state ? chief_state_json(*began.state) : "-");
  if (const Outcome written = write_text(life_file(folder, life), beginning); !written) return written.error();
  const auto lived = began.state ? events_until(folder / "trace.bin", began.state->version) : std::vector<trace::Event>{};
  if (const Outcome written = write_trace(folder / "trace.bin", lived); !written) return written.error();
  std::unique_ptr<RunFolder> made(new RunFolder(folder, job, total_samples, std::move(*events), life));
  made->relive(lived);
  return made;
}

/// They are in the trace's file already.
void RunFolder::relive(const std::vector<trace::Event>& events) {
  reliving_ = true;
  for (const trace::Event& event : events) {
    writer_.told(event);
    summary_.told(event);
    course_.told(event);
    ribbons_.told(event);
    timeline_.told(event);
    chrome_.told(event);
  }
  writer_.flush();
  reliving_ = false;
}

void RunFolder::flush() {
  writer_.flush();
  trace_file_.flush();
  inputs_file_.flush();
}

RunFolder::RunFolder(fs::path path, const Job& job, std::uint64_t total_samples, report::EventFile events, std::uint32_t life)
    : path_(std::move(path)),
      metrics_file_(path_ / "metrics.jsonl", std::ios::app),
      trace_file_(path_ / "trace.bin", std::ios::binary | std::ios::app),
      chrome_file_(path_ / "trace.json", std::ios::trunc),
      inputs_file_(inputs_of_life(path_, life), std::ios::binary | std::ios::trunc),
      writer_([this](std::span<const std::byte> block) {
        if (!reliving_) trace_file_.write(reinterpret_cast<const char*>(block.data()), static_cast<std::streamsize>(block.size()));
      }),
      timeline_(timeline_window(job, total_samples)),
      metrics_([this](std::string_view line) { metrics_file_ << line << std::flush; }, names(), workers_every),
      chrome_([this](std::string_view text) { chrome_file_ << text; }, names()),
      events_(std::move(events)),
      board_(events_, wall_now_s()) {}

report::EventNames RunFolder::names() const {
  report::EventNames names;
  names.node = [this](std::uint64_t node) {
    return node_names_ != nullptr && node < node_names_->size() ? (*node_names_)[node] : fmt::format("{}", node);
  };
  names.left = names_of<protocol::Gone>();
  names.decided = names_of<policy::Why>();
  names.finished = names_of<protocol::Ended>();
  return names;
}

void RunFolder::told(const trace::Event& event) {
  writer_.told(event);
  summary_.told(event);
  course_.told(event);
  ribbons_.told(event);
  timeline_.told(event);
  metrics_.told(event);
  chrome_.told(event);
  board_.told(event);
}

void RunFolder::heard(std::span<const std::byte> input) {
  inputs_file_.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
}

Result<RunResult> RunFolder::finish(const Job& job, const std::vector<std::string>& nodes, const protocol::Ending& ending,
                                    double sum_of_parts, const std::string& command, std::optional<PipelineFigures> pipeline) {
  const Job seen = with_strangers(job, nodes);
  RunResult result;
  result.label = job.strategy.kind;
  result.seed = job.seed;
  result.ending = ending;
  result.trace_sha256 = writer_.finish();
  result.summary = std::move(summary_);
  result.course = std::move(course_);
  result.ribbons = std::move(ribbons_);
  result.timeline = timeline_.lanes();
  result.sum_of_parts = sum_of_parts;
  result.pipeline = std::move(pipeline);
  chrome_.finish();
  (void)events_.close();
  metrics_file_.close();
  trace_file_.close();
  chrome_file_.close();
  inputs_file_.close();
  const report::Comparison table = comparison(seen, {result}, {job.seed}, command);
  if (const Outcome written = write_text(path_ / "report.html", report::page(table)); !written) return written.error();
  if (const Outcome written = write_text(path_ / "result.json", json_text(run_json(seen, result)) + "\n"); !written) return written.error();
  return result;
}

}  // namespace motley::app
