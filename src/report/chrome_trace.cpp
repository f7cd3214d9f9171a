#include "report/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace motley::report {
namespace {

using trace::Kind;

constexpr std::uint64_t cluster = 1;  // the one process; viewers give 0 a meaning of their own
std::uint64_t row_of(WorkerId worker) { return std::uint64_t{worker.value} + 1; }

/// Nanoseconds as microseconds, exactly: a double would lose the last digits after three months.
std::string micros(Duration d) {
  const std::int64_t ns = d.count();
  const std::uint64_t size = ns < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

JsonObject event_of(std::string_view phase, std::string_view name, std::string_view category) {
  JsonObject event;
  event.text("ph", phase).text("name", name).text("cat", category).count("pid", cluster);
  return event;
}

}  // namespace

ChromeTrace::ChromeTrace(Text text, EventNames names) : text_(std::move(text)), names_(std::move(names)) {
  text_("[\n" + event_of("M", "process_name", "__metadata").count("tid", 0).json("args", JsonObject{}.text("name", "cluster").str()).str());
}

void ChromeTrace::finish() {
  check(!finished_, "a trace is finished once");
  for (const auto& [worker, row] : rows_) end_stretch(worker, row, latest_);
  rows_.clear();
  finished_ = true;
  text_("\n]\n");
}

void ChromeTrace::on_event(const trace::Event& e) {
  check(!finished_, "nothing is told to a trace that is finished");
  latest_ = std::max(latest_, e.at);
  Row* const row = rows_.find(e.worker);  // none: it has left, or the event is nobody's
  switch (e.kind) {
    case Kind::joined: joined(e); break;
    case Kind::left: left(e); break;
    case Kind::ordered:
      if (row != nullptr) ordered(*row, e);
      break;
    case Kind::released:
      if (row != nullptr) released(*row, e);
      break;
    case Kind::compute_began:
      if (row != nullptr) compute_began(*row, e);
      break;
    case Kind::compute_ended:
      if (row != nullptr) compute_ended(*row, e);
      break;
    case Kind::contributed:
      if (row != nullptr && row->phase != Phase::compute) turn(e.worker, *row, Phase::wait, e.at);
      break;
    case Kind::dropped:
      if (row != nullptr) dropped(*row, e);
      break;
    case Kind::held:
      if (row != nullptr && row->phase == Phase::wait) row->why = called(names_.decided, e.why);
      break;
    case Kind::idled:
      if (row != nullptr && row->phase == Phase::wait) row->why = trace::name_of(e.kind);
      break;
    case Kind::applied:
      mark("update", "update", e.at, JsonObject{}.count("version", e.version.value).count("parts", e.first).number("rate", e.value));
      break;
    case Kind::counted: curve("staleness", e.at, static_cast<double>(e.last)); break;
    case Kind::evaluated:
      mark("evaluation", "evaluation", e.at,
           JsonObject{}.count("version", e.version.value).count("samples", e.first).number("accuracy", e.value).number("loss", e.second));
      curve("accuracy", e.at, e.value);
      curve("loss", e.at, e.second);
      break;
    case Kind::fault: {
      const std::string fault = called(names_.fault, e.last);
      const std::string node = called(names_.node, e.first);
      mark(fault + " " + node, "fault", e.at, JsonObject{}.text("fault", fault).text("node", node));
      break;
    }
    case Kind::finished: finished(e); break;
    case Kind::cancelled:
      if (row != nullptr) turn(e.worker, *row, Phase::wait, e.at);
      break;
    case Kind::state: curve("gap", e.at, static_cast<double>(e.last)); break;
    case Kind::straggles:
      if (row != nullptr) mark(e.worker, e.first == 1 ? "straggles" : "straggles no more", e.at, JsonObject{}.number("medians", e.value));
      break;
    case Kind::grouped:
      if (row != nullptr)
        mark(e.worker, fmt::format("group {}", e.first), e.at, JsonObject{}.count("group", e.first).count("groups", e.last));
      break;
    case Kind::part_began:
      if (row != nullptr) turn(e.worker, *row, Phase::compute, e.at);
      break;
    case Kind::part_ended:
      if (row != nullptr) turn(e.worker, *row, Phase::wait, e.at);
      break;
    case Kind::repartition:
      if (row != nullptr) mark(e.worker, fmt::format("blocks {} to {}", e.first, e.last - 1), e.at, JsonObject{}.count("node", e.epoch));
      break;
    case Kind::leased:
    case Kind::discarded:
    case Kind::committed:
    case Kind::returned: break;
  }
}

void ChromeTrace::joined(const trace::Event& e) {
  const std::string node = called(names_.node, e.first);
  Row* const row = rows_.announce(e.worker);
  if (row == nullptr) return;
  *row = {};
  row->since = e.at;
  name_row("thread_name", e.worker, JsonObject{}.text("name", fmt::format("{} (worker {})", node, e.worker.value)));
  name_row("thread_sort_index", e.worker, JsonObject{}.count("sort_index", row_of(e.worker)));
  mark(e.worker, "joined", e.at, JsonObject{}.text("node", node));
}

void ChromeTrace::left(const trace::Event& e) {
  const Row* const row = rows_.find(e.worker);
  if (row == nullptr) return;
  end_stretch(e.worker, *row, e.at);
  rows_.erase(e.worker);
  mark(e.worker, "left", e.at, JsonObject{}.text("reason", called(names_.left, e.why)));
}

void ChromeTrace::finished(const trace::Event& e) {
  for (const auto& [worker, row] : rows_) end_stretch(worker, row, e.at);
  rows_.clear();
  mark("finished", "run", e.at, JsonObject{}.count("samples", e.first).text("reason", called(names_.finished, e.why)));
}

void ChromeTrace::ordered(Row& row, const trace::Event& e) {
  row.ordered_step = e.step;
  row.ordered_samples = e.first;
  if (row.phase == Phase::receive && row.step == e.step) row.samples = e.first;
}

void ChromeTrace::released(Row& row, const trace::Event& e) {
  if (row.phase == Phase::compute) return;  // parameters travel meanwhile: hidden
  turn(e.worker, row, Phase::receive, e.at);
  row.step = e.step;
  row.samples = row.ordered_step == e.step ? row.ordered_samples : 0;
  row.why = called(names_.decided, e.why);
}

void ChromeTrace::compute_began(Row& row, const trace::Event& e) {
  turn(e.worker, row, Phase::compute, e.at);
  row.step = e.step;
}

void ChromeTrace::compute_ended(Row& row, const trace::Event& e) {
  row.samples = e.first;
  turn(e.worker, row, Phase::send, e.at);
}

void ChromeTrace::dropped(Row& row, const trace::Event& e) {
  if (row.phase != Phase::compute) turn(e.worker, row, Phase::wait, e.at);
  mark(e.worker, "dropped", e.at, JsonObject{}.count("step", e.step.value).text("reason", called(names_.decided, e.why)));
}

void ChromeTrace::turn(WorkerId worker, Row& row, Phase next, Instant now) {
  end_stretch(worker, row, now);
  row.phase = next;
  row.since = now;
  row.why.clear();
}

void ChromeTrace::end_stretch(WorkerId worker, const Row& row, Instant now) {
  static constexpr std::array<std::string_view, 4> doings{"wait", "receive", "compute", "send"};
  if (now <= row.since) return;  // nothing to see
  JsonObject arguments;
  arguments.count("step", row.step.value).count("samples", row.samples);
  if (!row.why.empty()) arguments.text("why", row.why);
  write(event_of("X", doings.at(static_cast<std::size_t>(row.phase)), "worker")
            .count("tid", row_of(worker))
            .json("ts", micros(row.since.time_since_epoch()))
            .json("dur", micros(now - row.since))
            .json("args", arguments.str()));
}

/// Across the whole process.
void ChromeTrace::mark(std::string_view name, std::string_view category, Instant at, const JsonObject& arguments) {
  write(
      event_of("i", name, category).count("tid", 0).text("s", "p").json("ts", micros(at.time_since_epoch())).json("args", arguments.str()));
}

/// On the worker's row.
void ChromeTrace::mark(WorkerId worker, std::string_view name, Instant at, const JsonObject& arguments) {
  write(event_of("i", name, "worker")
            .count("tid", row_of(worker))
            .text("s", "t")
            .json("ts", micros(at.time_since_epoch()))
            .json("args", arguments.str()));
}

/// Curves have no way to say null: where there is no number there is no point.
void ChromeTrace::curve(std::string_view name, Instant at, double value) {
  if (!std::isfinite(value)) return;
  write(event_of("C", name, "curve")
            .count("tid", 0)
            .json("ts", micros(at.time_since_epoch()))
            .json("args", JsonObject{}.number(name, value).str()));
}

void ChromeTrace::name_row(std::string_view what, WorkerId worker, const JsonObject& arguments) {
  write(event_of("M", what, "__metadata").count("tid", row_of(worker)).json("args", arguments.str()));
}

/// The comma goes before: so the text is whole after every event.
void ChromeTrace::write(const JsonObject& event) { text_(",\n" + event.str()); }

}  // namespace motley::report
