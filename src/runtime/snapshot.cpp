#include "runtime/snapshot.h"

#include <utility>

#include "base/bits.h"
#include "codec/codec.h"

namespace motley::runtime {

std::span<const std::byte> Snapshot::payload(const store::Layout& layout, SliceId slice) const {
  if (const auto found = coded.find(slice); found != coded.end()) return found->second;
  const auto bytes = std::as_const(*flat).bytes(layout[slice].offset, layout[slice].count);
  return bf16_transfer ? bytes.first(codec::encoded_bytes(layout[slice].bits(bf16_bits), layout[slice].count)) : bytes;
}

UpdateSnapshot make_update_snapshot(const store::Layout& layout, Version version, const store::SnapshotFormat& format) {
  UpdateSnapshot made{{version, format}, std::make_shared<Snapshot>()};
  made.snapshot->bf16_transfer = format.bf16_transfer;
  made.snapshot->flat = make_shareable_buffer(layout.values);
  made.snapshot->written.resize(layout.slices.size());
  return made;
}

}  // namespace motley::runtime
