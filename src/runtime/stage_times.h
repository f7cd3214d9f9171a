// When the stages of a pipeline computed their parts, as far as the conductor believes what they tell: the trace and the comparison of
// stages read these times. A stage's clock is its own; the conductor knows when it allowed a mini-batch and when it heard of it.
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
  /// Another layout: nobody computed anything of it before `now`.
  void begin(Instant now, std::size_t stages, std::uint64_t allowed);
  /// So many mini-batches may be begun, from `now` on. Every stage has committed `done` of them.
  void allow(Instant now, std::uint64_t allowed, std::uint64_t done);
  /// What a stage did since its last report, in its order. Afterwards no part began before its mini-batch was allowed or before the part
  /// ahead of it ended, and none ended after `now`. A clock that differs moves the report as a whole, so that durations stay what they are;
  /// only what is longer than the time there was is cut. Returns the end of the last part.
  Instant believe(Instant now, std::uint32_t stage, std::uint32_t micro_batches, std::vector<wire::PartRecord>& parts);
  /// Until when every stage has told what it did.
  [[nodiscard]] Instant recorded_until() const;

 private:
  [[nodiscard]] Instant allowed_at(std::uint64_t mini) const;

  std::vector<Instant> recorded_until_;       // by stage
  std::map<std::uint64_t, Instant> allowed_;  // since when so many were; those that all have committed are forgotten
};

/// The most parts of one report: three of each micro-batch that was allowed and was not committed by the stage before this report.
[[nodiscard]] constexpr std::uint64_t most_parts(std::uint64_t allowed, std::uint64_t committed, std::uint32_t micro_batches) {
  return allowed > committed ? 3 * micro_batches * (allowed - committed) : 0;
}

}  // namespace motley::runtime
