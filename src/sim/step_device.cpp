#include "sim/step_device.h"

#include <algorithm>
#include <cmath>

namespace motley::sim {

StepDevice::Due StepDevice::begin(Instant now, const wire::Order& order) {
  running_ = Running{order, now, {}, {}, {}, false};
  ++serial_;
  const auto outcome = device_.work(now, order.lease.size(), order.local_steps, order.limit, order.micro);
  running_->order.lease.cut(outcome.samples);
  running_->ends = outcome.end;
  running_->new_batch_size = outcome.new_batch_size;
  if (streamed_ == nullptr) return {outcome.end, true};
  arrived_.erase(arrived_.begin(), arrived_.lower_bound({order.worker, order.parameters}));
  running_->streaming.emplace(*streamed_, now, outcome.end - now);
  return {now, false};
}

std::optional<StepDevice::Due> StepDevice::advance(Instant now, std::vector<SliceId>& gradients) {
  const wire::Order& order = running_->order;
  Streaming& streaming = *running_->streaming;
  const auto next = streaming.advance(now, arrived_.at({order.worker, order.parameters}), gradients);
  if (next) return Due{*next, false};
  if (streaming.has_read()) return Due{std::max(now, streaming.ends()), true};
  return std::nullopt;
}

/// Local steps take a newer slice in at the first boundary between two steps after its arrival.
void StepDevice::slice_arrived(Instant now, const wire::Pulled& slice) {
  if (streamed_ != nullptr) {
    auto& arrived = arrived_[{slice.worker, slice.step}];
    arrived.resize(slices_);
    arrived[slice.slice.value] = true;
  }
  if (!running_ || running_->order.local_steps < 2) return;
  const wire::Order& order = running_->order;
  if (slice.worker != order.worker || slice.step <= order.step) return;
  const double done = seconds(now - running_->began) / seconds(running_->ends - running_->began);
  const auto after = static_cast<std::uint32_t>(std::max(1.0, std::ceil(done * order.local_steps)));
  if (after < order.local_steps) running_->arrived_slices.push_back({slice.slice, after});
}

StepDevice::FinishedStep StepDevice::end(Instant now) {
  Running done = std::move(*running_);
  running_.reset();
  const Duration stalled = done.streaming ? done.streaming->stalled() : Duration{};
  return {std::move(done.order), std::move(done.arrived_slices), now - done.began - stalled, stalled, done.new_batch_size};
}

void StepDevice::reset() {
  running_.reset();
  arrived_.clear();
}

}  // namespace motley::sim
