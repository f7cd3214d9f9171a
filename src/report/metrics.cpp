#include "report/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "report/json_object.h"

namespace motley::report {
namespace {

/// NaN where no time has passed.
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

Metrics::Metrics(Lines lines, EventNames names, Duration workers_every)
    : lines_(std::move(lines)), names_(std::move(names)), workers_every_(workers_every) {
  check(workers_every > Duration{0}, "some time passes between two lines about the workers");
}

void Metrics::on_event(const trace::Event& event) {
  using namespace trace;
  workers_if_due(event.at);
  std::visit(
      match{[&](const Joined& e) { joined(e, event.at); }, [&](const Left& e) { left(e, event.at); },
            [&](const Released& e) { change_state(e.worker, "receiving"); },
            [&](const ComputeBegan& e) { change_state(e.worker, "computing"); },
            [&](const ComputeEnded& e) { change_state(e.worker, "sending"); },
            [&](const Contributed& e) { change_state(e.worker, "waiting"); }, [&](const Dropped& e) { change_state(e.worker, "waiting"); },
            [&](const Cancelled& e) { change_state(e.worker, "cancelled"); }, [&](const Held& e) { change_state(e.worker, "held"); },
            [&](const Idled& e) { change_state(e.worker, "resting"); }, [&](const Counted& e) { counted(e); },
            [&](const Evaluated& e) { evaluated(e, event.at); }, [&](const Finished& e) { finished(e, event.at); },
            Ignored<Ordered, Leased, Applied, Returned, Discarded, StateEntered, Straggles, Grouped, PartBegan, PartEnded, Committed,
                    Repartitioned, FaultInjected>{}},
      event.data);
}

void Metrics::line(const JsonObject& object) { lines_(object.str() + "\n"); }

/// Computing hides concurrent transfers.
void Metrics::change_state(WorkerId worker, std::string_view state) {
  Member* const member = members_.find(worker);
  if (member == nullptr) return;
  if (member->state == "computing" && state != "sending" && state != "cancelled") return;
  member->state = state;
}

void Metrics::joined(const trace::Joined& joined, Instant at) {
  Member* const member = members_.announce(joined.worker);
  if (member == nullptr) return;
  *member = {};
  member->node = joined.node;
  member->since = at;
  line(line_of("joined", at).count("worker", joined.worker.value).text("node", called(names_.node, joined.node)));
}

void Metrics::left(const trace::Left& left, Instant at) {
  const Member* const member = members_.find(left.worker);
  if (member == nullptr) return;
  line(line_of("left", at)
           .count("worker", left.worker.value)
           .text("node", called(names_.node, member->node))
           .text("reason", called(names_.left, left.why)));
  members_.erase(left.worker);
}

/// Contributions that are counted after their worker left have no entry here.
void Metrics::counted(const trace::Counted& contribution) {
  Member* const member = members_.find(contribution.worker);
  if (member == nullptr) return;
  member->samples += contribution.samples;
  member->recent_samples += contribution.samples;
  ++member->recent_parts;
  member->recent_staleness += contribution.staleness;
}

void Metrics::evaluated(const trace::Evaluated& evaluation, Instant at) {
  const std::uint64_t samples = evaluation.samples >= evaluated_samples_ ? evaluation.samples - evaluated_samples_ : 0;
  line(line_of("evaluated", at)
           .count("samples", evaluation.samples)
           .count("version", evaluation.version.value)
           .number("accuracy", evaluation.accuracy)
           .number("loss", evaluation.loss)
           .number("samples_per_second", per_second(samples, at - evaluated_)));
  evaluated_ = at;
  evaluated_samples_ = evaluation.samples;
}

void Metrics::finished(const trace::Finished& finished, Instant at) {
  if (at > workers_written_) workers(at);
  line(line_of("finished", at).count("samples", finished.samples).text("reason", called(names_.finished, finished.why)));
}

void Metrics::workers_if_due(Instant now) {
  const Instant due = now - now.time_since_epoch() % workers_every_;
  if (due > workers_written_) workers(due);
}

void Metrics::workers(Instant now) {
  workers_written_ = now;
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
