// How a flat buffer of values is cut into slices and spread over servers. Pure arithmetic; knows names of nothing.
// Every process computes the same layout from the same tensors, so it never travels.
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
  std::uint8_t least_bits = 2;  // that its values need on the wire
};

/// Values [offset, offset+count) of the flat buffer: the unit of sending, applying and priority. A parameter slice of a lower id is needed
/// earlier in the forward pass.
struct Slice {
  std::uint64_t offset{};
  std::uint64_t count{};  // never 0
  TensorKind kind{};
  ServerId server;
  std::uint8_t least_bits = 2;
  std::uint32_t priority = 0;  // on the wire: lower goes first
  /// How many bits a value takes when the order is for `bits`.
  [[nodiscard]] std::uint8_t bits(std::uint8_t ordered) const { return std::max(ordered, least_bits); }
};

struct Layout {
  std::vector<Slice> slices;  // indexed by SliceId; offsets ascend, no gaps
  std::uint64_t values{};
  std::uint32_t servers{};
  [[nodiscard]] const Slice& operator[](SliceId id) const { return slices[id.value]; }
  /// The slices that live on `server`, ascending: its parameters before its statistics.
  [[nodiscard]] std::vector<SliceId> of(ServerId server) const;
  /// Indices [from, to) of the slices that touch values [first, last).
  [[nodiscard]] std::pair<std::size_t, std::size_t> touching(std::uint64_t first, std::uint64_t last) const;
};

/// Cuts at `slice_values` values (>= 1): a larger tensor is split into nearly equal pieces, neighbours of one kind and precision are merged
/// up to it. Each slice, in order, goes to the server (>= 1 of them) that holds the fewest values so far. So the servers' loads differ by
/// at most one slice, and the layers needed first are spread over all of them. What forward needs first has the highest priority:
/// statistics, then parameters by id.
Layout cut(std::span<const TensorPlace> tensors, std::uint64_t slice_values, std::uint32_t servers,
           const LayoutOptions& layout_options = {});

/// How many values each server sends less than the nearest by the time a slice of the nearest is here: what travels late because it is far
/// away. Less than a millisecond counts for nothing. `bytes_per_second`: of the line that the slices share at their receiver.
[[nodiscard]] std::vector<std::uint64_t> head_starts(std::span<const double> distances_s, double bytes_per_second);

/// Spreads the slices again over servers of which some are further away: each slice, in the order of need, goes where it would arrive
/// first, given its head start (in values) and what is there already. So the layers needed first live on the nearest servers, and all
/// servers' last slices arrive together; without head starts it is what cut() does. No server gets less than about half of an equal share;
/// where one would be left without a slice, the layout stays as it is.
void place(Layout& layout, std::span<const std::uint64_t> head_starts);

}  // namespace motley::store
