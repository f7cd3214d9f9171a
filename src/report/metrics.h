// metrics.jsonl: a run as lines of JSON for whoever follows or plots it, one object a line, written while the events come in. Here too, for
// every writer of events as JSON (chrome_trace.h): names for what events carry as numbers, and an object as text. Written by hand, since
// Boost.JSON's code lives in a room that this one may not include.
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

#include "trace/event.h"
#include "trace/members.h"

namespace motley::report {

/// What the numbers in events are called; those who number them live in other rooms. An absent function lets the number stand for itself.
struct EventNames {
  using Name = std::function<std::string(std::uint64_t)>;
  Name node{};      // of joined and fault
  Name left{};      // why a worker left
  Name decided{};   // why of released, held and dropped
  Name finished{};  // why the run ended
  Name fault{};     // kind of fault
};
/// `number` as `name` calls it; the number itself where there is no name.
[[nodiscard]] std::string called(const EventNames::Name& name, std::uint64_t number);

/// A JSON object as text, member after member in the order given. Keys are ours and need no escaping.
class JsonObject {
 public:
  /// Control characters become spaces or '?', bytes that are not UTF-8 '?'.
  JsonObject& text(std::string_view key, std::string_view value);
  JsonObject& count(std::string_view key, std::uint64_t value);
  /// Reads back as the same double; null when it is not finite, since JSON has no such number.
  JsonObject& number(std::string_view key, double value);
  /// JSON written elsewhere, taken as it is.
  JsonObject& json(std::string_view key, std::string_view value);
  /// The whole object. Members may still be added to a later one.
  [[nodiscard]] std::string str() const { return body_ + "}"; }

 private:
  std::string body_ = "{";
};

/// Memory: one entry per member, whatever the length of the run. Events of different workers may come somewhat out of order of time; time
/// here is the latest yet told.
class Metrics : public trace::Sink {
 public:
  /// Takes one whole line a call, line end included.
  using Lines = std::function<void(std::string_view)>;
  /// The line about the workers is due at each multiple of `workers_every` (> 0) of event time, and at the end. It is written when the
  /// first event at or after that time is told; a long silence yields one line, not one for each multiple.
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
  void joined(const trace::Event& event);
  void left(const trace::Event& event);
  void counted(const trace::Event& event);
  void evaluated(const trace::Event& event);
  void finished(const trace::Event& event);
  void workers_if_due(Instant now);
  void workers(Instant now);
  void turn(WorkerId worker, std::string_view state);

  Lines lines_;
  EventNames names_;
  Duration workers_every_;
  Instant workers_told_{};
  trace::Members<Member> members_;
  Instant evaluated_{};
  std::uint64_t evaluated_samples_ = 0;
};

}  // namespace motley::report
