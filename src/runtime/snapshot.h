// A snapshot: the encoded parameters of one server at one version, as sent to workers. Several workers may share one.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "runtime/buffer.h"
#include "store/layout.h"
#include "store/shard_store.h"

namespace motley::runtime {

/// Identifies a snapshot among those of a server.
struct SnapshotKey {
  Version version;
  store::SnapshotFormat format{};
  std::uint8_t bits = 32;      // per value, as the strategy asked
  std::uint32_t pull_class{};  // of the workers it is for; only below 32 bits
  bool whole = true;           // the values that the class holds, not their change
  auto operator<=>(const SnapshotKey&) const = default;
};

/// Event-loop thread only, except that the store thread writes the slices of `flat` that are not written yet.
struct Snapshot {
  SharedBuffer flat;                                // the values, sent as they are
  bool bf16_transfer = false;                       // slices of `flat` that allow it hold bf16, from where their floats would begin
  std::map<SliceId, std::vector<std::byte>> coded;  // encoded changes, in place of `flat`
  std::vector<bool> written;                        // by slice, while an update writes it; empty: all are

  [[nodiscard]] bool has(SliceId slice) const { return written.empty() || written[slice.value]; }
  [[nodiscard]] std::span<const std::byte> payload(const store::Layout& layout, SliceId slice) const;
};
using SharedSnapshot = std::shared_ptr<Snapshot>;

/// A snapshot that an update writes slice by slice while it applies.
struct UpdateSnapshot {
  SnapshotKey key;
  SharedSnapshot snapshot;
};

/// One with all slices of `flat` still to be written.
[[nodiscard]] UpdateSnapshot make_update_snapshot(const store::Layout& layout, Version version, const store::SnapshotFormat& format);

}  // namespace motley::runtime
