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

Score::Score(store::Cadence of) : cadence(std::move(of)), by_read(ascending(cadence.read)), by_made(ascending(cadence.made)) {}

std::optional<Instant> Streaming::advance(Instant now, const std::vector<bool>& here, std::vector<SliceId>& made) {
  for (; read_ < score_->by_read.size(); ++read_) {
    const std::uint32_t slice = score_->by_read[read_];
    const Instant due = at(score_->cadence.read[slice]);
    if (due > now) return due;
    if (!here[slice]) {
      if (!stands_since_) stands_since_ = due;
      return std::nullopt;
    }
    if (stands_since_) stood_ += now - *stands_since_;
    stands_since_.reset();
  }
  for (; made_ < score_->by_made.size(); ++made_) {
    const std::uint32_t slice = score_->by_made[made_];
    const Instant due = at(score_->cadence.made[slice]);
    if (due > now) return due;
    made.push_back(SliceId{slice});
  }
  return std::nullopt;
}

}  // namespace motley::sim
