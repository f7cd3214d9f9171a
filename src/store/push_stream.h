// The sender's side of coded contributions: error feedback over the whole flat buffer, slice by slice. What rounding keeps back of one
// contribution goes with the next one of the same worker.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "store/floats.h"
#include "store/layout.h"

namespace motley::store {

/// p = x + e;  sent = Q(p);  e = p - sent.   e is kept in units of the update that x makes: when the contribution's weight or the rate
/// changes from one step to the next, it is scaled so that it still means the same change of the model.
/// Slices that travel as floats keep nothing back, and take along what was. One owner thread. Memory: as many floats as the layout has
/// values, once coding begins.
class PushStream {
 public:
  explicit PushStream(Layout layout) : layout_(std::move(layout)) {}

  /// A new contribution: `samples` of them at learning rate `rate` (0: unknown).
  void begin(std::uint64_t samples, double rate);
  /// Something of this slice was kept back: however it travels next, it must be encoded here, so that this goes along.
  [[nodiscard]] bool has_residual(SliceId id) const { return !has_residual_.empty() && has_residual_[id.value]; }
  /// Appends slice `id` of `flat` (the contribution, all values) with `bits` ordered to `out`. With 32 bits nothing stays behind.
  void encode(SliceId id, std::uint8_t bits, std::span<const float> flat, codec::Bytes& out);

  /// |e| / |p| of the contributions so far since the last begin(); 0 when nothing was coded.
  [[nodiscard]] double residual_ratio() const;
  [[nodiscard]] std::span<const float> residual() const { return residual_; }

 private:
  Layout layout_;
  std::map<int, std::unique_ptr<codec::Codec>> codecs_;
  Floats residual_;                 // e; empty: nothing was coded yet
  std::vector<bool> has_residual_;  // by slice: e of it is not 0
  double unit_ = 0;                 // samples * rate of the contribution that e was left by
  double squared_residual_ = 0;
  double squared_wanted_ = 0;
};

}  // namespace motley::store
