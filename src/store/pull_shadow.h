// The sender's side of coded parameters: what the workers of one pull class hold, and the change that takes them to new values.
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

/// The shadow h is what every member of the class holds, bit for bit:   d = Q(w - h);  h += d;  d is sent, and they add it too.
/// So rounding never adds up: what one change misses, the next one sees. Slices that travel as floats are sent as they are.
/// One server's slices; one owner thread, which has the team move several slices at a time: each of them is moved by one thread, so that
/// their number changes nothing. Memory: as many floats as the layout has values.
class PullShadow {
 public:
  PullShadow(const Layout& layout, ServerId server, std::shared_ptr<ThreadPool> pool = std::make_shared<ThreadPool>(1));

  /// The class moves on to `target` (flat, all values; only this server's slices are read) as near as `bits` allow. The first time it
  /// takes the target itself.
  void move_to(std::span<const float> target, std::uint8_t bits);

  /// Of the last move: slice `id` as bytes. Nothing after the first.
  [[nodiscard]] const codec::Bytes& change(SliceId id) const { return changes_.at(id); }
  /// This server's slices as the members hold them now, into `flat`.
  void values(std::span<float> flat) const;

 private:
  void move_slice(std::span<const float> target, std::uint8_t bits, bool first, SliceId id);

  Layout layout_;
  std::vector<SliceId> slices_;
  std::shared_ptr<ThreadPool> pool_;
  Floats held_;                              // h
  std::map<SliceId, codec::Bytes> changes_;  // of all slices
};

/// What a member does with a change that came in: values += decoded, or values = decoded when the slice travels as floats. `before` holds
/// the slice's values until now and may be the same as `after`. Refused: bytes of the wrong size.
Outcome apply_change(const Slice& slice, std::uint8_t bits, std::span<const std::byte> bytes, std::span<const float> before,
                     std::span<float> after);

}  // namespace motley::store
