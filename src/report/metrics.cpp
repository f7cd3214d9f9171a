#include "report/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "report/text.h"

namespace motley::report {
namespace {

using trace::Kind;

/// Not a number where no time has passed.
double per_second(std::uint64_t samples, Duration passed) {
  return passed > Duration{0} ? static_cast<double>(samples) / seconds(passed) : std::numeric_limits<double>::quiet_NaN();
}

double mean(std::uint64_t sum, std::uint64_t n) {
  return n > 0 ? static_cast<double>(sum) / static_cast<double>(n) : std::numeric_limits<double>::quiet_NaN();
}

JsonObject line_of(std::string_view kind, Instant at) {
  JsonObject object;
  object.text("kind", kind).number("time_s", seconds(at));
  return object;
}

}  // namespace

// JSON ---------------------------------------------------------------------------------------------------------------------------------

std::string called(const EventNames::Name& name, std::uint64_t number) { return name ? name(number) : fmt::format("{}", number); }

JsonObject& JsonObject::json(std::string_view key, std::string_view value) {
  if (body_.size() > 1) body_ += ',';
  body_ += '"';
  body_ += key;
  body_ += "\":";
  body_ += value;
  return *this;
}

JsonObject& JsonObject::text(std::string_view key, std::string_view value) {
  std::string quoted = "\"";
  for (const char c : printable(value)) {  // which leaves only these two to escape
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return json(key, quoted + '"');
}

JsonObject& JsonObject::count(std::string_view key, std::uint64_t value) { return json(key, fmt::format("{}", value)); }

JsonObject& JsonObject::number(std::string_view key, double value) {
  return json(key, std::isfinite(value) ? fmt::format("{}", value) : "null");
}

// Metrics ------------------------------------------------------------------------------------------------------------------------------

Metrics::Metrics(Lines lines, EventNames names, Duration workers_every)
    : lines_(std::move(lines)), names_(std::move(names)), workers_every_(workers_every) {
  check(workers_every > Duration{0}, "the line about the workers comes again after some time, not at once");
}

void Metrics::on_event(const trace::Event& e) {
  workers_if_due(e.at);
  switch (e.kind) {
    case Kind::joined: joined(e); break;
    case Kind::left: left(e); break;
    case Kind::released: turn(e.worker, "receiving"); break;
    case Kind::compute_began: turn(e.worker, "computing"); break;
    case Kind::compute_ended: turn(e.worker, "sending"); break;
    case Kind::contributed:
    case Kind::dropped: turn(e.worker, "waiting"); break;
    case Kind::cancelled: turn(e.worker, "cancelled"); break;
    case Kind::held: turn(e.worker, "held"); break;
    case Kind::idled: turn(e.worker, "resting"); break;
    case Kind::counted: counted(e); break;
    case Kind::evaluated: evaluated(e); break;
    case Kind::finished: finished(e); break;
    case Kind::ordered:
    case Kind::leased:
    case Kind::applied:
    case Kind::returned:
    case Kind::discarded:
    case Kind::state:
    case Kind::straggles:
    case Kind::grouped:
    case Kind::part_began:
    case Kind::part_ended:
    case Kind::committed:
    case Kind::repartition:
    case Kind::fault: break;
  }
}

void Metrics::line(const JsonObject& object) { lines_(object.str() + "\n"); }

void Metrics::turn(WorkerId worker, std::string_view state) {
  Member* const member = members_.find(worker);
  if (member == nullptr) return;
  if (member->state == "computing" && state != "sending" && state != "cancelled") return;  // what travels meanwhile is hidden
  member->state = state;
}

void Metrics::joined(const trace::Event& e) {
  Member* const member = members_.announce(e.worker);
  if (member == nullptr) return;
  *member = {};
  member->node = e.first;
  member->since = e.at;
  line(line_of("joined", e.at).count("worker", e.worker.value).text("node", called(names_.node, e.first)));
}

void Metrics::left(const trace::Event& e) {
  const Member* const member = members_.find(e.worker);
  if (member == nullptr) return;
  line(line_of("left", e.at)
           .count("worker", e.worker.value)
           .text("node", called(names_.node, member->node))
           .text("reason", called(names_.left, e.why)));
  members_.erase(e.worker);
}

/// What is counted after its worker has left belongs to nobody here.
void Metrics::counted(const trace::Event& e) {
  Member* const member = members_.find(e.worker);
  if (member == nullptr) return;
  member->samples += e.first;
  member->recent_samples += e.first;
  ++member->recent_parts;
  member->recent_staleness += e.last;
}

void Metrics::evaluated(const trace::Event& e) {
  const std::uint64_t samples = e.first >= evaluated_samples_ ? e.first - evaluated_samples_ : 0;
  line(line_of("evaluated", e.at)
           .count("samples", e.first)
           .count("version", e.version.value)
           .number("accuracy", e.value)
           .number("loss", e.second)
           .number("samples_per_second", per_second(samples, e.at - evaluated_)));
  evaluated_ = e.at;
  evaluated_samples_ = e.first;
}

void Metrics::finished(const trace::Event& e) {
  if (e.at > workers_told_) workers(e.at);
  line(line_of("finished", e.at).count("samples", e.first).text("reason", called(names_.finished, e.why)));
}

void Metrics::workers_if_due(Instant now) {
  const Instant due = now - now.time_since_epoch() % workers_every_;
  if (due > workers_told_) workers(due);
}

void Metrics::workers(Instant now) {
  workers_told_ = now;
  std::string list = "[";
  for (auto& [worker, member] : members_) {
    if (list.size() > 1) list += ',';
    list += JsonObject{}
                .count("worker", worker.value)
                .text("node", called(names_.node, member.node))
                .count("samples", member.samples)
                .number("samples_per_second", per_second(member.recent_samples, now - member.since))
                .number("staleness_mean", mean(member.recent_staleness, member.recent_parts))
                .text("state", member.state)
                .str();
    member.since = now;
    member.recent_samples = member.recent_parts = member.recent_staleness = 0;
  }
  line(line_of("workers", now).json("workers", list + "]"));
}

}  // namespace motley::report
