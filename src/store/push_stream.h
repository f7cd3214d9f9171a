// Encodes a worker's contributions with error feedback, slice by slice: the rounding error of one contribution is added to the next one.
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

/// p = x + e;  sent = Q(p);  e = p - sent.   e is kept in units of the update that x makes: when the contribution's weight or the learning
/// rate changes from one step to the next, e is rescaled so that it stands for the same change of the model.
/// A slice sent as fp32 includes its residual e and leaves none. One owner thread. Memory: one float per value of the layout, from the
/// first encode() on.
class PushStream {
 public:
  explicit PushStream(Layout layout) : layout_(std::move(layout)) {}

  /// Begins a contribution of `samples` samples at learning rate `rate` (0: unknown).
  void begin(std::uint64_t samples, double rate);
  /// Whether this slice has a residual: it must be encoded here next time, whatever the bits.
  [[nodiscard]] bool has_residual(SliceId id) const { return !has_residual_.empty() && has_residual_[id.value]; }
  /// Appends slice `id` of `flat` (the contribution, all values), encoded in slice.bits(bits), to `out`.
  void encode(SliceId id, std::uint8_t bits, std::span<const float> flat, codec::Bytes& out);

  /// |e| / |p| over the slices encoded since the last begin(); 0 if there are none.
  [[nodiscard]] double residual_ratio() const;
  [[nodiscard]] std::span<const float> residual() const { return residual_; }

 private:
  Layout layout_;
  std::map<int, std::unique_ptr<codec::Codec>> codecs_;
  Floats residual_;                 // e; empty: nothing was encoded yet
  std::vector<bool> has_residual_;  // by slice: whether e is not 0
  double unit_ = 0;                 // samples * rate of the contribution that left e
  double squared_residual_ = 0;
  double squared_wanted_ = 0;
};

}  // namespace motley::store
