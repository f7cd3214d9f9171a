// One step of a device that receives parameters and sends gradients while it computes. Pure: the simulator asks when to look again.
//
// Rule: the device reads slices in the order of the layer timing and stalls at the first one that has not arrived; everything later is
//   delayed by the stall. Stalls do not count as computing.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "store/layer_timing.h"

namespace motley::sim {

/// A layer timing with its slices in order of reading and of gradients.
struct LayerSequence {
  explicit LayerSequence(store::LayerTiming layer_timing);
  store::LayerTiming layer_timing;
  std::vector<std::uint32_t> by_read;
  std::vector<std::uint32_t> by_made;
};

class Streaming {
 public:
  /// Keeps a reference to `layer_sequence`. `length`: of the step without stalls.
  Streaming(const LayerSequence& layer_sequence, Instant began, Duration length)
      : layer_sequence_(&layer_sequence), began_(began), length_(length) {}

  /// Advances to `now` with the slices that are `here` (by id); appends slices whose gradients are ready. Returns when to call again; none:
  /// when another slice arrives, or, after the last gradient, never.
  std::optional<Instant> advance(Instant now, const std::vector<bool>& here, std::vector<SliceId>& made);

  [[nodiscard]] bool is_stalled() const { return stalled_since_.has_value(); }
  /// Every slice was read, so ends() is final.
  [[nodiscard]] bool has_read() const { return read_ == layer_sequence_->by_read.size(); }
  [[nodiscard]] Instant ends() const { return began_ + stalled_ + length_; }
  [[nodiscard]] Duration stalled() const { return stalled_; }

 private:
  [[nodiscard]] Instant at(double part) const { return began_ + stalled_ + from_seconds(part * seconds(length_)); }

  const LayerSequence* layer_sequence_;
  Instant began_;
  Duration length_;
  Duration stalled_{};
  std::optional<Instant> stalled_since_;
  std::size_t read_ = 0;
  std::size_t made_ = 0;
};

}  // namespace motley::sim
