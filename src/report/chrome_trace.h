// Writes trace.json for ui.perfetto.dev and chrome://tracing: one row per worker with its phases, marks for updates, evaluations, faults,
// joins and leaves, curves for accuracy, loss and staleness.
//
//   file := [ event , event ... ]       Trace Event Format, array form; ts and dur in microseconds, three decimals
//           ph "M" names, "X" stretches, "i" marks, "C" curves
//
// A bare array, unlike {"traceEvents": [...]}, may lack its end, so the file of a killed run can be opened. Events are not in order of
// time: a stretch is written when it ends, and viewers sort.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "report/event_names.h"
#include "report/json_object.h"
#include "trace/event.h"
#include "trace/members.h"

namespace motley::report {

/// Memory: one entry per member. Events of one worker must come in order of time, those of different workers nearly.
class ChromeTrace : public trace::Sink {
 public:
  /// Receives text in pieces: after any call, all pieces so far and "]" are a JSON document.
  using Text = std::function<void(std::string_view)>;
  /// Writes the head at once. `names`: see event_names.h.
  ChromeTrace(Text text, EventNames names);

  void on_event(const trace::Event& event) override;
  /// Ends all stretches at the latest time of any event and closes the document. To be called once; no event may follow.
  void finish();

 private:
  enum class Phase : std::uint8_t { wait, receive, compute, send };
  struct Row {
    Phase phase = Phase::wait;
    Instant since{};
    std::string why;  // it is held or was released; empty: no reason was recorded
    Step step;
    std::uint64_t samples{};
    Step ordered_step;  // the newest order, recorded before or after the release
    std::uint64_t ordered_samples{};
  };
  void on(Instant at, const trace::Joined& joined);
  void on(Instant at, const trace::Left& left);
  void on(Instant at, const trace::Ordered& order);
  void on(Instant, const trace::Leased&) {}
  void on(Instant at, const trace::Released& released);
  void on(Instant at, const trace::ComputeBegan& step);
  void on(Instant at, const trace::ComputeEnded& step);
  void on(Instant at, const trace::Contributed& contribution);
  void on(Instant at, const trace::Applied& update);
  void on(Instant at, const trace::Counted& contribution);
  void on(Instant at, const trace::Held& held);
  void on(Instant at, const trace::Dropped& step);
  void on(Instant at, const trace::Idled& idled);
  void on(Instant at, const trace::Evaluated& evaluation);
  void on(Instant at, const trace::FaultInjected& fault);
  void on(Instant at, const trace::Finished& finished);
  void on(Instant, const trace::Returned&) {}
  void on(Instant at, const trace::Cancelled& step);
  void on(Instant, const trace::Discarded&) {}
  void on(Instant at, const trace::StateEntered& state);
  void on(Instant at, const trace::Straggles& change);
  void on(Instant at, const trace::Grouped& change);
  void on(Instant at, const trace::PartBegan& part);
  void on(Instant at, const trace::PartEnded& part);
  void on(Instant, const trace::Committed&) {}
  void on(Instant at, const trace::Repartitioned& layout);
  void change_phase(WorkerId worker, Row& row, Phase next, Instant now);
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
