#include "runtime/step_prefetcher.h"

#include <utility>

namespace motley::runtime {

void StepPrefetcher::prefetch(const wire::Order& order, std::shared_ptr<IncomingParameters> values) {
  const std::lock_guard lock(mutex_);
  prefetched_ = Prefetched{order, std::move(values)};
}

void StepPrefetcher::cancel() {
  const std::lock_guard lock(mutex_);
  prefetched_.reset();
}

void StepPrefetcher::end_step(const Lease& lease) {
  last_lease_ = lease;
  if (next_.get() == begun_before_) next_.reset();
}

std::optional<NextStep> StepPrefetcher::next_step() {
  std::optional<Prefetched> taken;
  {
    const std::lock_guard lock(mutex_);
    taken = std::exchange(prefetched_, std::nullopt);
  }
  if (taken && may_begin_(taken->order)) {
    std::vector<std::uint32_t> samples;
    epochs_.samples_of(taken->order.lease, samples);
    next_ = std::make_unique<NextStepIo>(taken->order, std::move(taken->values), std::move(samples));
  }
  if (!next_ || next_.get() == begun_before_) return std::nullopt;
  return next_->as_next_step();
}

std::span<const std::uint32_t> StepPrefetcher::likely_next_samples(const Lease& lease) {
  epochs_.samples_of(epochs_.likely_after(last_lease_, lease), likely_samples_);
  return likely_samples_;
}

}  // namespace motley::runtime
