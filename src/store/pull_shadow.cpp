#include "store/pull_shadow.h"

#include <algorithm>
#include <utility>

#include "base/bits.h"
#include "base/check.h"

namespace motley::store {
PullShadow::PullShadow(const Layout& layout, ServerId server, std::shared_ptr<ThreadPool> pool)
    : layout_(layout), slices_(layout.of(server)), pool_(std::move(pool)) {
  for (const SliceId id : slices_) changes_[id];
}

void PullShadow::move_to(std::span<const float> target, std::uint8_t bits) {
  check(target.size() == layout_.values, "a target covers the whole flat buffer");
  const bool first = held_.empty();
  held_.resize(layout_.values);
  pool_->parallel_for(slices_.size(), [&](std::size_t i) { move_slice(target, bits, first, slices_[i]); });
}

void PullShadow::move_slice(std::span<const float> target, std::uint8_t bits, bool first, SliceId id) {
  const Slice& slice = layout_[id];
  const std::span<const float> wanted = target.subspan(slice.offset, slice.count);
  const std::span<float> held = std::span(held_).subspan(slice.offset, slice.count);
  const std::uint8_t coded = slice.bits(bits);
  const auto codec = codec::make(coded).value();
  codec::Bytes& change = changes_.at(id);
  change.clear();
  if (coded == fp32_bits || first) {
    std::copy(wanted.begin(), wanted.end(), held.begin());
    if (coded == fp32_bits) codec->encode(wanted, change);
    return;
  }
  std::vector<float> missing(slice.count);
  for (std::size_t i = 0; i < slice.count; ++i) missing[i] = wanted[i] - held[i];
  codec->encode(missing, change);
  const Outcome applied = apply_change(slice, bits, change, held, held);
  check(applied.ok(), "a codec decodes what it encoded");
}

void PullShadow::values(std::span<float> flat) const {
  check(flat.size() == layout_.values && !held_.empty(), "values are written to a whole flat buffer, after the first move_to()");
  for (const SliceId id : slices_)
    std::copy_n(held_.begin() + static_cast<std::ptrdiff_t>(layout_[id].offset), layout_[id].count,
                flat.begin() + static_cast<std::ptrdiff_t>(layout_[id].offset));
}

Outcome apply_change(const Slice& slice, std::uint8_t bits, std::span<const std::byte> bytes, std::span<const float> before,
                     std::span<float> after) {
  check(before.size() == slice.count && after.size() == slice.count, "a change covers its slice");
  auto codec = codec::make(slice.bits(bits));
  if (!codec) return codec.error();
  if (slice.bits(bits) == fp32_bits) return (*codec)->decode(bytes, after);
  std::vector<float> change(slice.count);
  Outcome decoded = (*codec)->decode(bytes, change);
  if (!decoded.ok()) return decoded;
  for (std::size_t i = 0; i < slice.count; ++i) after[i] = before[i] + change[i];
  return Done{};
}

}  // namespace motley::store
