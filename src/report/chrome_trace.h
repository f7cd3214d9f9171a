// trace.json for ui.perfetto.dev and chrome://tracing: one row per worker with what it does, marks for updates, evaluations, faults, joins
// and leaves, curves for accuracy, loss and staleness. Written while the events come in; knows no file.
//
//   file := [ event , event ... ]       Trace Event Format, array form; ts and dur in microseconds, three decimals
//           ph "M" names, "X" stretches, "i" marks, "C" curves
//
// The array form and not {"traceEvents": [...]}: of the two only the bare array may lack its end, so that what a killed run has written
// still opens. In no order of time: a worker's stretch is written when it ends, and viewers sort.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "report/metrics.h"
#include "trace/event.h"
#include "trace/members.h"

namespace motley::report {

/// Memory: one entry per member, whatever the length of the run. Events of one worker come in order, those of different workers nearly.
class ChromeTrace : public trace::Sink {
 public:
  /// Given text in pieces: whatever the last call was, all pieces and then "]" are a JSON document.
  using Text = std::function<void(std::string_view)>;
  /// Writes the head at once. `names` as in metrics.h.
  ChromeTrace(Text text, EventNames names);

  void on_event(const trace::Event& event) override;
  /// Ends what workers are still doing at the latest time told, and closes the document. Once; nothing may be told after it.
  void finish();

 private:
  enum class Phase : std::uint8_t { wait, receive, compute, send };
  struct Row {
    Phase phase = Phase::wait;
    Instant since{};
    std::string why;  // it is held or was released; empty when nobody said
    Step step;
    std::uint64_t samples{};
    Step ordered_step;  // the newest order, which may be heard of before or after the release
    std::uint64_t ordered_samples{};
  };
  void joined(const trace::Event& event);
  void left(const trace::Event& event);
  void finished(const trace::Event& event);
  void ordered(Row& row, const trace::Event& event);
  void released(Row& row, const trace::Event& event);
  void compute_began(Row& row, const trace::Event& e);
  void compute_ended(Row& row, const trace::Event& event);
  void dropped(Row& row, const trace::Event& event);
  void turn(WorkerId worker, Row& row, Phase next, Instant now);
  void end_stretch(WorkerId worker, const Row& row, Instant now);
  void mark(std::string_view name, std::string_view category, Instant at, const JsonObject& arguments);
  void mark(WorkerId worker, std::string_view name, Instant at, const JsonObject& arguments);
  void curve(std::string_view name, Instant at, double value);
  void name_row(std::string_view what, WorkerId worker, const JsonObject& arguments);
  void write(const JsonObject& event);

  Text text_;
  EventNames names_;
  trace::Members<Row> rows_;
  Instant latest_{};
  bool finished_ = false;
};

}  // namespace motley::report
