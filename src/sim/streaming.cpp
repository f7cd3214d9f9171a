#include "sim/streaming.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace motley::sim {
namespace {

std::vector<std::uint32_t> ascending(const std::vector<double>& parts) {
  std::vector<std::uint32_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return parts[a] < parts[b]; });
  return order;
}

}  // namespace

LayerSequence::LayerSequence(store::LayerTiming of)
    : layer_timing(std::move(of)), by_read(ascending(layer_timing.read)), by_made(ascending(layer_timing.gradient_ready)) {}

std::optional<Instant> Streaming::advance(Instant now, const std::vector<bool>& here, std::vector<SliceId>& made) {
  for (; read_ < layer_sequence_->by_read.size(); ++read_) {
    const std::uint32_t slice = layer_sequence_->by_read[read_];
    const Instant due = at(layer_sequence_->layer_timing.read[slice]);
    if (due > now) return due;
    if (!here[slice]) {
      if (!stalled_since_) stalled_since_ = due;
      return std::nullopt;
    }
    if (stalled_since_) stalled_ += now - *stalled_since_;
    stalled_since_.reset();
  }
  for (; made_ < layer_sequence_->by_made.size(); ++made_) {
    const std::uint32_t slice = layer_sequence_->by_made[made_];
    const Instant due = at(layer_sequence_->layer_timing.gradient_ready[slice]);
    if (due > now) return due;
    made.push_back(SliceId{slice});
  }
  return std::nullopt;
}

}  // namespace motley::sim
