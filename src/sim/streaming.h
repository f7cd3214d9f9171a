// One step of one device whose parameters come in while it is computed and whose gradients leave as they are made. Pure: the world asks it
// when to look again.
//
// Rule: the device goes through the cadence's readings in order and stands still at the first whose slice is not here yet; everything
//   later moves by as long as it stood. What it stands still for is not computing.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "store/layer_timing.h"

namespace motley::sim {

/// A cadence in the order in which a device goes through it.
struct LayerSequence {
  explicit LayerSequence(store::LayerTiming layer_timing);
  store::LayerTiming layer_timing;
  std::vector<std::uint32_t> by_read;
  std::vector<std::uint32_t> by_made;
};

class Streaming {
 public:
  /// Keeps a reference to `layer_sequence`. `length`: of computing, with everything there.
  Streaming(const LayerSequence& layer_sequence, Instant began, Duration length)
      : layer_sequence_(&layer_sequence), began_(began), length_(length) {}

  /// Goes on as far as it can by `now`, with the slices that are `here` (by id); appends what was made. Returns when to call again, or
  /// none: when another slice is here, or never if everything is made.
  std::optional<Instant> advance(Instant now, const std::vector<bool>& here, std::vector<SliceId>& made);

  [[nodiscard]] bool is_stalled() const { return stalled_since_.has_value(); }
  /// All that it reads was there, so that it is known when it ends.
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
