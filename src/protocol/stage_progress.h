// Progress of the stages of a pipeline. When one stage hangs all wait, so the counts of commits do not show which one. Each stage reports
// twice per heartbeat how many tasks (parts, updates, copies of the model) its device has finished, and whether it is busy.
// Rule:  limit = the least limit, or 10 * the longest time that this stage was seen at one task, if that is longer
//        Before its first commit in a generation: 10 * the least limit, doubled after each stage that this expelled.
//        A stage that is seen at one task for longer has hung. When no stage is busy and none makes progress for 10 * the least limit,
//        a message between them was lost.
// The longest time is measured by the pipeline chief, from the first to the last report of a task; short tasks are seen once.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"

namespace motley::protocol {

class StageProgress {
 public:
  explicit StageProgress(Duration least) : least_(least) {}

  /// A new generation of so many stages, without measurements.
  void begin(std::size_t stages);
  void committed(Instant now, std::uint32_t stage);
  /// Progress other than that of a stage's device.
  void moved(Instant now) { moved_ = now; }
  void driver_paused(Duration time);

  struct Late {
    Duration took{};     // so far
    Duration longest{};  // of earlier tasks; 0: it has never committed
  };
  /// A stage's report. A value: the stage has hung.
  [[nodiscard]] std::optional<Late> status(Instant now, std::uint32_t stage, std::uint64_t done, bool busy);
  /// The time without any progress, if it is too long.
  [[nodiscard]] std::optional<Duration> no_progress(Instant now) const;

 private:
  struct Stage {
    std::optional<Instant> since;  // the time at which its task began
    Instant seen{};                // last report of that task
    std::uint64_t done = 0;
    Duration longest{};
    bool has_committed = false;
  };
  Duration least_;
  int first_ = 1;  // factor by which the limit of a stage without commits has grown
  std::vector<Stage> stages_;
  std::optional<Instant> moved_;  // any stage; none: no report of this generation yet
};

}  // namespace motley::protocol
