// Derives from the events in which phase each worker is: the one state machine behind shares of time and timelines.
//
//   Joined -> wait;  Released -> receive;  ComputeBegan -> compute;  ComputeEnded -> send;  Contributed, Dropped, Cancelled -> wait
//   With several steps in progress: compute while one is computed, else send while a contribution is incomplete, else receive.
//   PartBegan -> compute, PartEnded -> wait: a pipeline stage has no other phases.
//   After Left, or Finished for all workers, events of a worker are ignored: they come from a fenced worker.
//   Workers without a Joined have no phase.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/event.h"
#include "trace/members.h"

namespace motley::trace {

enum class Phase : std::uint8_t { compute, send, wait, receive };

/// A time that one worker spent in one phase; may be empty.
struct Stretch {
  Instant from{};
  Instant to{};
  Phase phase{};
};

class Activity {
 public:
  struct Ended {
    WorkerId worker;
    Stretch stretch;
  };
  /// The stretches that this event ends, in order of worker; valid until the next call.
  std::span<const Ended> on_event(const Event& event);

 private:
  struct Now {
    Phase phase = Phase::wait;
    Instant since{};
    bool member = true;
    bool computing = false;
    std::optional<Step> cancelled{};  // the latest one
    std::uint64_t released = 0;       // steps
    std::uint64_t computed = 0;       // of them
    std::uint64_t delivered = 0;      // of those: on every server, or dropped
  };
  void update(WorkerId worker, Now& now, const Event& event);
  void compute_ended(WorkerId worker, Now& now, const ComputeEnded& step, Instant at);
  static void cancelled(Now& now, Step step);
  void settle(WorkerId worker, Now& now, Instant at);
  void change_phase(WorkerId worker, Now& now, Phase next, Instant at);
  void leave(WorkerId worker, Now& now, Instant at);

  Members<Now> lanes_;
  std::vector<Ended> ended_;
};

}  // namespace motley::trace
