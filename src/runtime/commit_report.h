// The report of a stage to the pipeline chief on each mini-batch that it commits: the parts that it computed since the last report.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "runtime/stage_executor.h"
#include "wire/pipeline_messages.h"

namespace motley::runtime {

class CommitReport {
 public:
  /// The forward of this micro-batch uses parameters of `version`; so do its other parts.
  void forward_began(std::uint64_t micro, std::uint64_t version) { versions_[micro] = version; }
  void done(const StageWork& work) {
    const std::uint64_t micro = work.part.micro;
    parts_.push_back({static_cast<std::uint8_t>(work.part.part), micro, versions_[micro], work.part.late, work.began.time_since_epoch(),
                      work.ended.time_since_epoch()});
    stash_bytes_ = std::max(stash_bytes_, work.stash_bytes);
    note(work.finite);
    if (work.part.part == pipeline::Part::weight) versions_.erase(micro);
  }
  /// Once false, every later report says so: training has diverged.
  void note(bool finite) { finite_ = finite_ && finite; }

  [[nodiscard]] wire::Committed take(std::uint32_t generation, std::uint32_t stage, std::uint64_t mini_batches) {
    return {generation, stage, mini_batches, finite_, stash_bytes_, std::exchange(parts_, {})};
  }

 private:
  std::vector<wire::PartRecord> parts_;
  std::map<std::uint64_t, std::uint64_t> versions_;  // by micro-batch
  std::uint64_t stash_bytes_ = 0;                    // the most so far
  bool finite_ = true;
};

}  // namespace motley::runtime
