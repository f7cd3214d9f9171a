// The sender's side of encoded parameters: a copy of the values that the workers of one pull class hold, and the encoded change to the
// next.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "store/floats.h"
#include "store/layout.h"
#include "store/thread_pool.h"

namespace motley::store {

/// The shadow h equals what every member of the class holds, bit for bit:   d = Q(w - h);  h += d;  d is sent, and the members add it too.
/// Rounding errors do not accumulate: the next change contains what this one missed. Slices sent as fp32 are sent as they are.
/// For one server's slices. One owner thread, which has the pool encode several slices in parallel, each on one thread, so that the number
/// of threads changes no bit. Memory: one float per value of the layout.
class PullShadow {
 public:
  PullShadow(const Layout& layout, ServerId server, std::shared_ptr<ThreadPool> pool = std::make_shared<ThreadPool>(1));

  /// Encodes the change to `target` (flat, all values; only this server's slices are read) in `bits` and applies it to the shadow. The
  /// first call copies the target exactly.
  void move_to(std::span<const float> target, std::uint8_t bits);

  /// Slice `id` of the last change, encoded. Empty after the first move_to().
  [[nodiscard]] const codec::Bytes& change(SliceId id) const { return changes_.at(id); }
  /// Writes this server's slices of the shadow to `flat`.
  void values(std::span<float> flat) const;

 private:
  void move_slice(std::span<const float> target, std::uint8_t bits, bool first, SliceId id);

  Layout layout_;
  std::vector<SliceId> slices_;
  std::shared_ptr<ThreadPool> pool_;
  Floats held_;                              // h
  std::map<SliceId, codec::Bytes> changes_;  // by slice of this server
};

/// Applies a received change: after = before + decoded, or after = decoded if the slice is sent as fp32. `before` and `after` may be the
/// same span. Fails if the size of `bytes` is wrong.
Outcome apply_change(const Slice& slice, std::uint8_t bits, std::span<const std::byte> bytes, std::span<const float> before,
                     std::span<float> after);

}  // namespace motley::store
