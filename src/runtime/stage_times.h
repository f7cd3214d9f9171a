// When the stages of a pipeline computed their parts, as the pipeline chief accepts it: a stage reports times of its own clock; the chief
// knows when it allowed a mini-batch and when it received the report. The trace and the comparison of stages read these times.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/time.h"
#include "wire/pipeline_messages.h"

namespace motley::runtime {

class StageTimes {
 public:
  /// A new assignment of stages: no part of it was computed before `now`.
  void begin(Instant now, std::size_t stages, std::uint64_t allowed);
  /// `allowed` mini-batches may be begun, from `now` on. Every stage has committed `done` of them.
  void allow(Instant now, std::uint64_t allowed, std::uint64_t done);
  /// Corrects the parts that a stage computed since its last report, in order. Afterwards no part began before its mini-batch was allowed
  /// or before the part ahead of it ended, and none ended after `now`. The report is shifted as a whole, so that durations stay as they
  /// are; only durations longer than the available time are cut. Returns the end of the last part.
  Instant believe(Instant now, std::uint32_t stage, std::uint32_t micro_batches, std::vector<wire::PartRecord>& parts);
  /// Every stage has reported all parts that ended before this.
  [[nodiscard]] Instant recorded_until() const;

 private:
  [[nodiscard]] Instant allowed_at(std::uint64_t mini) const;

  std::vector<Instant> recorded_until_;       // by stage
  std::map<std::uint64_t, Instant> allowed_;  // since when so many were; those that every stage has committed are dropped
};

/// The most parts of one report: three for each micro-batch that was allowed and not committed by the stage before this report.
[[nodiscard]] constexpr std::uint64_t most_parts(std::uint64_t allowed, std::uint64_t committed, std::uint32_t micro_batches) {
  return allowed > committed ? 3 * micro_batches * (allowed - committed) : 0;
}

}  // namespace motley::runtime
