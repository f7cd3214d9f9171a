// metrics.jsonl: a run as lines of JSON for programs that follow or plot it, one object per line, written as the events come in.
//
//   {"kind": "joined", "time_s", "worker", "node"}          {"kind": "left", "time_s", "worker", "node", "reason"}
//   {"kind": "evaluated", "time_s", "samples", "version", "accuracy", "loss", "samples_per_second"}
//   {"kind": "workers", "time_s", "workers": [{"worker", "node", "samples", "samples_per_second", "staleness_mean", "state"}, ...]}
//   {"kind": "finished", "time_s", "samples", "reason"}
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "report/event_names.h"
#include "trace/event.h"
#include "trace/members.h"

namespace motley::report {

class JsonObject;

/// Memory: one entry per member. Events of different workers may come slightly out of order of time.
class Metrics : public trace::Sink {
 public:
  /// Receives one whole line per call, with its line end.
  using Lines = std::function<void(std::string_view)>;
  /// A line about the workers is due at each multiple of `workers_every` (> 0) of event time, and at the end. It is written at the first
  /// event at or after that time; a time without events yields one line, not one for each multiple.
  Metrics(Lines lines, EventNames names, Duration workers_every);

  void on_event(const trace::Event& event) override;

 private:
  struct Member {
    std::uint64_t node{};
    std::string_view state = "waiting";
    std::uint64_t samples{};  // counted since it joined
    // since the last line about the workers, or since it joined:
    Instant since{};
    std::uint64_t recent_samples{};
    std::uint64_t recent_parts{};
    std::uint64_t recent_staleness{};
  };
  void line(const JsonObject& object);
  void joined(const trace::Joined& joined, Instant at);
  void left(const trace::Left& left, Instant at);
  void counted(const trace::Counted& contribution);
  void evaluated(const trace::Evaluated& evaluation, Instant at);
  void finished(const trace::Finished& finished, Instant at);
  void workers_if_due(Instant now);
  void workers(Instant now);
  void change_state(WorkerId worker, std::string_view state);

  Lines lines_;
  EventNames names_;
  Duration workers_every_;
  Instant workers_written_{};
  trace::Members<Member> members_;
  Instant evaluated_{};
  std::uint64_t evaluated_samples_ = 0;
};

}  // namespace motley::report
