#include "report/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace motley::report {
namespace {

constexpr std::uint64_t cluster = 1;  // id of the only process; viewers treat 0 specially
std::uint64_t row_of(WorkerId worker) { return std::uint64_t{worker.value} + 1; }

/// Nanoseconds as microseconds, exactly: a double loses the last digits after three months.
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

void ChromeTrace::on_event(const trace::Event& event) {
  check(!finished_, "no event follows the end of a trace");
  latest_ = std::max(latest_, event.at);
  std::visit([&](const auto& data) { on(event.at, data); }, event.data);
}

void ChromeTrace::on(Instant at, const trace::Joined& joined) {
  const std::string node = called(names_.node, joined.node);
  Row* const row = rows_.announce(joined.worker);
  if (row == nullptr) return;
  *row = {};
  row->since = at;
  name_row("thread_name", joined.worker, JsonObject{}.text("name", fmt::format("{} (worker {})", node, joined.worker.value)));
  name_row("thread_sort_index", joined.worker, JsonObject{}.count("sort_index", row_of(joined.worker)));
  mark(joined.worker, "joined", at, JsonObject{}.text("node", node));
}

void ChromeTrace::on(Instant at, const trace::Left& left) {
  const Row* const row = rows_.find(left.worker);
  if (row == nullptr) return;
  end_stretch(left.worker, *row, at);
  rows_.erase(left.worker);
  mark(left.worker, "left", at, JsonObject{}.text("reason", called(names_.left, left.why)));
}

void ChromeTrace::on(Instant, const trace::Ordered& order) {
  Row* const row = rows_.find(order.worker);
  if (row == nullptr) return;
  row->ordered_step = order.step;
  row->ordered_samples = order.samples;
  if (row->phase == Phase::receive && row->step == order.step) row->samples = order.samples;
}

/// While the worker computes, parameters are received in the background.
void ChromeTrace::on(Instant at, const trace::Released& released) {
  Row* const row = rows_.find(released.worker);
  if (row == nullptr || row->phase == Phase::compute) return;
  change_phase(released.worker, *row, Phase::receive, at);
  row->step = released.step;
  row->samples = row->ordered_step == released.step ? row->ordered_samples : 0;
  row->why = called(names_.decided, released.why);
}

void ChromeTrace::on(Instant at, const trace::ComputeBegan& step) {
  Row* const row = rows_.find(step.worker);
  if (row == nullptr) return;
  change_phase(step.worker, *row, Phase::compute, at);
  row->step = step.step;
}

void ChromeTrace::on(Instant at, const trace::ComputeEnded& step) {
  Row* const row = rows_.find(step.worker);
  if (row == nullptr) return;
  row->samples = step.samples;
  change_phase(step.worker, *row, Phase::send, at);
}

void ChromeTrace::on(Instant at, const trace::Contributed& contribution) {
  Row* const row = rows_.find(contribution.worker);
  if (row != nullptr && row->phase != Phase::compute) change_phase(contribution.worker, *row, Phase::wait, at);
}

void ChromeTrace::on(Instant at, const trace::Applied& update) {
  mark("update", "update", at,
       JsonObject{}.count("version", update.version.value).count("parts", update.parts).number("rate", update.rate));
}

void ChromeTrace::on(Instant at, const trace::Counted& contribution) {
  curve("staleness", at, static_cast<double>(contribution.staleness));
}

void ChromeTrace::on(Instant, const trace::Held& held) {
  Row* const row = rows_.find(held.worker);
  if (row != nullptr && row->phase == Phase::wait) row->why = called(names_.decided, held.why);
}

void ChromeTrace::on(Instant at, const trace::Dropped& step) {
  Row* const row = rows_.find(step.worker);
  if (row == nullptr) return;
  if (row->phase != Phase::compute) change_phase(step.worker, *row, Phase::wait, at);
  mark(step.worker, "dropped", at, JsonObject{}.count("step", step.step.value).text("reason", called(names_.decided, step.why)));
}

void ChromeTrace::on(Instant, const trace::Idled& idled) {
  Row* const row = rows_.find(idled.worker);
  if (row != nullptr && row->phase == Phase::wait) row->why = trace::name_of(idled);
}

void ChromeTrace::on(Instant at, const trace::Evaluated& evaluation) {
  mark("evaluation", "evaluation", at,
       JsonObject{}
           .count("version", evaluation.version.value)
           .count("samples", evaluation.samples)
           .number("accuracy", evaluation.accuracy)
           .number("loss", evaluation.loss));
  curve("accuracy", at, evaluation.accuracy);
  curve("loss", at, evaluation.loss);
}

void ChromeTrace::on(Instant at, const trace::FaultInjected& fault) {
  const std::string kind = called(names_.fault, fault.kind);
  const std::string node = called(names_.node, fault.node);
  mark(kind + " " + node, "fault", at, JsonObject{}.text("fault", kind).text("node", node));
}

void ChromeTrace::on(Instant at, const trace::Finished& finished) {
  for (const auto& [worker, row] : rows_) end_stretch(worker, row, at);
  rows_.clear();
  mark("finished", "run", at, JsonObject{}.count("samples", finished.samples).text("reason", called(names_.finished, finished.why)));
}

void ChromeTrace::on(Instant at, const trace::Cancelled& step) {
  if (Row* const row = rows_.find(step.worker)) change_phase(step.worker, *row, Phase::wait, at);
}

void ChromeTrace::on(Instant at, const trace::StateEntered& state) { curve("gap", at, static_cast<double>(state.gap)); }

void ChromeTrace::on(Instant at, const trace::Straggles& change) {
  if (rows_.find(change.worker) == nullptr) return;
  mark(change.worker, change.now ? "straggles" : "straggles no more", at, JsonObject{}.number("medians", change.medians));
}

void ChromeTrace::on(Instant at, const trace::Grouped& change) {
  if (rows_.find(change.worker) == nullptr) return;
  mark(change.worker, fmt::format("group {}", change.group), at, JsonObject{}.count("group", change.group).count("groups", change.groups));
}

void ChromeTrace::on(Instant at, const trace::PartBegan& part) {
  if (Row* const row = rows_.find(part.stage)) change_phase(part.stage, *row, Phase::compute, at);
}

void ChromeTrace::on(Instant at, const trace::PartEnded& part) {
  if (Row* const row = rows_.find(part.stage)) change_phase(part.stage, *row, Phase::wait, at);
}

void ChromeTrace::on(Instant at, const trace::Repartitioned& layout) {
  if (rows_.find(layout.stage) == nullptr) return;
  mark(layout.stage, fmt::format("blocks {} to {}", layout.first_block, layout.last_block - 1), at,
       JsonObject{}.count("node", layout.node));
}

void ChromeTrace::change_phase(WorkerId worker, Row& row, Phase next, Instant now) {
  end_stretch(worker, row, now);
  row.phase = next;
  row.since = now;
  row.why.clear();
}

void ChromeTrace::end_stretch(WorkerId worker, const Row& row, Instant now) {
  static constexpr std::array<std::string_view, 4> phases{"wait", "receive", "compute", "send"};
  if (now <= row.since) return;
  JsonObject arguments;
  arguments.count("step", row.step.value).count("samples", row.samples);
  if (!row.why.empty()) arguments.text("why", row.why);
  write(event_of("X", phases.at(static_cast<std::size_t>(row.phase)), "worker")
            .count("tid", row_of(worker))
            .json("ts", micros(row.since.time_since_epoch()))
            .json("dur", micros(now - row.since))
            .json("args", arguments.str()));
}

/// Across all rows.
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

/// Curves cannot express null: a value that is not finite gives no point.
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

/// The comma comes first, so that the text can be closed after every event.
void ChromeTrace::write(const JsonObject& event) { text_(",\n" + event.str()); }

}  // namespace motley::report
