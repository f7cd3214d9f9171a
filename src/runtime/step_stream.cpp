#include "runtime/step_stream.h"

#include <algorithm>
#include <utility>

namespace motley::runtime {

StepStream::StepStream(Environment environment, std::shared_ptr<Computation> computation, std::optional<Duration> emulated,
                       const Clock& clock)
    : environment_(std::move(environment)), computation_(std::move(computation)), clock_(clock), emulated_(emulated) {
  for (const store::Slice& slice : environment_.layout.slices) missing_.push_back(slice.count);
}

bool StepStream::wait_for(std::uint64_t first, std::uint64_t last) {
  const auto since = std::chrono::steady_clock::now();
  const bool arrived = computation_->values->await(first, last);
  waited_ += std::chrono::steady_clock::now() - since;
  if (arrived && emulated_) stall_for(first, last);
  return arrived && !computation_->cancelled;
}

bool StepStream::take(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each) {
  if (!environment_.keeps_values) return false;
  computation_->values->hand_over(first, last, each);
  return true;
}

std::span<const std::uint32_t> StepStream::likely_next_samples() {
  if (emulated_) return {};
  return environment_.prefetcher.likely_next_samples(computation_->order.lease);
}

const GradientEncoding* StepStream::gradient_encoding() {
  if (emulated_) return nullptr;
  encoding_ = environment_.encodings.next(computation_->order, computation_->samples);
  return encoding_ ? &encoding_->encoding : nullptr;
}

void StepStream::encoded_gradient_ready(std::uint64_t first, std::uint64_t last) {
  environment_.encodings.encoded(*encoding_);
  computation_->coded = encoding_->bits;
  gradient_ready(first, last);
}

void StepStream::gradient_ready(std::uint64_t first, std::uint64_t last) {
  if (!environment_.streams) return;
  const auto [from, to] = environment_.layout.touching(first, last);
  for (std::size_t s = from; s < to; ++s) {
    const store::Slice& slice = environment_.layout.slices[s];
    missing_[s] -= std::min(last, slice.offset + slice.count) - std::max(first, slice.offset);
    if (missing_[s] > 0) continue;
    if (emulated_)
      environment_.wait.until(emulated_time(environment_.layer_timing.gradient_ready[s]), [&] { return computation_->cancelled.load(); });
    environment_.ready(SliceId{static_cast<std::uint32_t>(s)});
  }
}

/// When an emulated device reaches this fraction of the step's work.
std::chrono::steady_clock::time_point StepStream::emulated_time(double fraction) const {
  return clock_.real(computation_->began + emulated_stalled_ + from_seconds(fraction * seconds(*emulated_)));
}

/// The emulated device stalled if these values arrived after the time at which it reads them.
void StepStream::stall_for(std::uint64_t first, std::uint64_t last) {
  const auto [from, to] = environment_.layout.touching(first, last);
  for (std::size_t s = from; s < to; ++s) {
    const auto late = computation_->values->when(SliceId{static_cast<std::uint32_t>(s)}) - emulated_time(environment_.layer_timing.read[s]);
    emulated_stalled_ += std::max(Duration(late), Duration{0});
  }
}

}  // namespace motley::runtime
