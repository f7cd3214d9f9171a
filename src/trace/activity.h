// What each worker is doing, read from the events: the one state machine behind shares of time and timelines.
//
//   joined -> wait;  released -> receive;  compute_began -> compute;  compute_ended -> send;  contributed, dropped, cancelled -> wait
//   With several steps under way: it computes while it does, else it sends while something of it is under way, else it receives.
//   part_began -> compute, part_ended -> wait: a stage of a pipeline has nothing between them
//   left, and for everyone finished -> gone: whatever is told of it later is a fenced worker that does not know it yet
//   Whoever was never announced has done nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/event.h"
#include "trace/members.h"

namespace motley::trace {

enum class Phase : std::uint8_t { compute, send, wait, receive };

/// A time in which one worker did one thing; may be empty.
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
  /// The stretches that this event ends, in order of worker; good until the next call.
  std::span<const Ended> on_event(const Event& event);

 private:
  struct Now {
    Phase phase = Phase::wait;
    Instant since{};
    bool here = true;
    bool computing = false;
    std::optional<Step> cancelled{};  // the last one
    std::uint64_t released = 0;       // steps
    std::uint64_t computed = 0;       // of them
    std::uint64_t delivered = 0;      // of those, to every server, or dropped
  };
  void on_event(const Event& event, Now& lane);
  void settle(WorkerId worker, Now& lane, Instant now);
  void turn(WorkerId worker, Now& lane, Phase next, Instant now);
  void stalled(WorkerId worker, Now& lane, Duration how_long, Instant now);
  void go(WorkerId worker, Now& lane, Instant now);

  Members<Now> lanes_;
  std::vector<Ended> ended_;
};

}  // namespace motley::trace
