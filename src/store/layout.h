// Cuts a flat buffer of values into slices and assigns them to servers. Every process computes the same layout from the same tensors, so it
// is never sent.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/layout_options.h"
#include "base/model_shape.h"

namespace motley::store {

/// A tensor's place in the flat buffer, as far as cutting needs it. Tensors come in forward order, parameters before statistics, without
/// gaps.
struct TensorPlace {
  std::uint64_t offset{};
  std::uint64_t count{};
  TensorKind kind{};
  std::uint8_t least_bits = 2;  // that its values need when sent
};

/// Values [offset, offset+count) of the flat buffer: the unit of sending, applying and priority. Parameter slices are numbered in forward
/// order.
struct Slice {
  std::uint64_t offset{};
  std::uint64_t count{};  // never 0
  TensorKind kind{};
  ServerId server;
  std::uint8_t least_bits = 2;
  std::uint32_t priority = 0;  // lower is sent first
  /// Bits per value when the strategy asks for `ordered`.
  [[nodiscard]] std::uint8_t bits(std::uint8_t ordered) const { return std::max(ordered, least_bits); }
};

struct Layout {
  std::vector<Slice> slices;  // indexed by SliceId; offsets ascend, no gaps
  std::uint64_t values{};
  std::uint32_t servers{};
  [[nodiscard]] const Slice& operator[](SliceId id) const { return slices[id.value]; }
  /// The slices of `server`, ascending: its parameters before its statistics.
  [[nodiscard]] std::vector<SliceId> of(ServerId server) const;
  /// Indices [from, to) of the slices that touch values [first, last).
  [[nodiscard]] std::pair<std::size_t, std::size_t> touching(std::uint64_t first, std::uint64_t last) const;
};

/// Cuts into slices of at most `slice_values` (>= 1) values: a larger tensor is split into nearly equal pieces, neighbours of one kind and
/// precision are merged. Each slice, in order, is assigned to the server (of `servers` >= 1) with the fewest values so far: loads differ by
/// at most one slice, and the first layers are spread over all servers. Slices needed first in forward have the highest priority:
/// statistics, then parameters by id.
Layout cut(std::span<const TensorPlace> tensors, std::uint64_t slice_values, std::uint32_t servers,
           const LayoutOptions& layout_options = {});

/// For each server, how many values arrive from the closest one before its own first ones do, given its one-way latency. Differences below
/// equal_distance_s count as 0. `bytes_per_second`: of the link that the slices share at their receiver.
[[nodiscard]] std::vector<std::uint64_t> head_starts(std::span<const double> distances_s, double bytes_per_second);

/// Assigns the slices again to servers of unequal latency: each slice, in forward order, to the server from which it would arrive first,
/// given the head starts (in values) and the slices assigned so far. The first layers are then on the closest servers, and the last slices
/// of all servers arrive together; with equal head starts the result is that of cut(). A server gets at least about half of an equal share;
/// if one would get no slice, the layout is unchanged.
void place(Layout& layout, std::span<const std::uint64_t> head_starts);

}  // namespace motley::store
