#include "runtime/pipeline_chief_trace.h"

#include <algorithm>
#include <utility>

#include "protocol/trace_events.h"

namespace motley::runtime {

PipelineChiefTrace::PipelineChiefTrace(Duration trained_before, std::uint64_t first_mini, Sink sink)
    : trained_before_(trained_before), sink_(std::move(sink)), done_(first_mini) {}

Instant PipelineChiefTrace::trained(Instant now) const { return Instant{trained_before_ + (started_ ? now - *started_ : Duration{0})}; }

std::uint64_t PipelineChiefTrace::assigned(Instant now, const protocol::AssignStages& assignment) {
  if (!started_) started_ = now;
  write_all();
  const std::uint64_t lost = done_ - std::min(done_, assignment.from);
  computed_again_ += lost;
  done_ = assignment.from;
  times_.begin(trained(now), assignment.cut.size(), assignment.allowed);
  peak_stash_bytes_.resize(std::max(peak_stash_bytes_.size(), assignment.cut.size()));
  for (const trace::EventData& event : protocol::to_trace_events(assignment)) record(trained(now), event);
  return lost;
}

PipelineChiefTrace::StageWork PipelineChiefTrace::committed(Instant now, const wire::Committed& report, std::uint32_t micro_batches) {
  StageWork work;
  const WorkerId stage{report.stage};
  std::vector<wire::PartRecord> parts = report.parts;
  const Instant last = times_.believe(trained(now), report.stage, micro_batches, parts);
  for (const wire::PartRecord& part : parts) {
    work.busy_s += seconds(part.ended - part.began);
    work.micro_batches += part.part == 2 ? 1 : 0;
    record(Instant{part.began},
           trace::PartBegan{.stage = stage, .micro_batch = part.micro, .version = {part.version}, .part = part.part, .late = part.late});
    record(Instant{part.ended}, trace::PartEnded{.stage = stage, .micro_batch = part.micro, .part = part.part});
  }
  record(last, trace::Committed{.stage = stage, .version = {report.mini_batches}});
  double& peak = peak_stash_bytes_[report.stage];
  peak = std::max(peak, static_cast<double>(report.stash_bytes));
  return work;
}

void PipelineChiefTrace::committed_by_all(Instant now, std::uint64_t mini_batches, std::size_t stages) {
  done_ = mini_batches;
  done_at_ = trained(now);
  record(done_at_, trace::Applied{.version = {mini_batches}, .parts = stages});
}

void PipelineChiefTrace::expelled(Instant now, const protocol::StageExpelled& stage) {
  record(trained(now), protocol::to_trace_event(stage));
}

void PipelineChiefTrace::write_until(Instant when) {
  while (!held_events_.empty() && held_events_.begin()->first <= when) {
    sink_(held_events_.begin()->second);
    held_events_.erase(held_events_.begin());
  }
}

}  // namespace motley::runtime
