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
#include "store/cadence.h"

namespace motley::sim {

/// A cadence in the order in which a device goes through it.
struct Score {
  explicit Score(store::Cadence cadence);
  store::Cadence cadence;
  std::vector<std::uint32_t> by_read;
  std::vector<std::uint32_t> by_made;
};

class Streaming {
 public:
  /// Keeps a reference to `score`. `length`: of computing, with everything there.
  Streaming(const Score& score, Instant began, Duration length) : score_(&score), began_(began), length_(length) {}

  /// Goes on as far as it can by `now`, with the slices that are `here` (by id); appends what was made. Returns when to call again, or
  /// none: when another slice is here, or never if everything is made.
  std::optional<Instant> advance(Instant now, const std::vector<bool>& here, std::vector<SliceId>& made);

  [[nodiscard]] bool stands() const { return stands_since_.has_value(); }
  /// All that it reads was there, so that it is known when it ends.
  [[nodiscard]] bool has_read() const { return read_ == score_->by_read.size(); }
  [[nodiscard]] Instant ends() const { return began_ + stood_ + length_; }
  [[nodiscard]] Duration stood() const { return stood_; }

 private:
  [[nodiscard]] Instant at(double part) const { return began_ + stood_ + from_seconds(part * seconds(length_)); }

  const Score* score_;
  Instant began_;
  Duration length_;
  Duration stood_{};
  std::optional<Instant> stands_since_;
  std::size_t read_ = 0;
  std::size_t made_ = 0;
};

}  // namespace motley::sim
