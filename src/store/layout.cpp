#include "store/layout.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "store/constants.h"

namespace motley::store {
namespace {

void require_forward_order(std::span<const TensorPlace> tensors) {
  std::uint64_t end = 0;
  TensorKind kind = TensorKind::parameter;
  for (const TensorPlace& tensor : tensors) {
    check(tensor.offset == end, "tensors follow each other without gaps");
    check(tensor.kind >= kind, "parameters come before statistics");
    end += tensor.count;
    kind = tensor.kind;
  }
}

/// Merges the piece into the last slice if kind and size allow, else appends a slice.
void append(std::vector<Slice>& slices, const TensorPlace& piece, std::uint64_t slice_values) {
  if (!slices.empty()) {
    Slice& last = slices.back();
    if (last.kind == piece.kind && last.least_bits == piece.least_bits && last.count + piece.count <= slice_values) {
      last.count += piece.count;
      return;
    }
  }
  slices.push_back({piece.offset, piece.count, piece.kind, {}, piece.least_bits});
}

/// Pieces of one tensor differ by at most one value.
void append_pieces(std::vector<Slice>& slices, const TensorPlace& tensor, std::uint64_t slice_values) {
  const std::uint64_t pieces = tensor.count / slice_values + (tensor.count % slice_values != 0);
  for (std::uint64_t done = 0, left = pieces; left > 0; --left) {
    const std::uint64_t count = (tensor.count - done) / left;
    append(slices, {tensor.offset + done, count, tensor.kind, tensor.least_bits}, slice_values);
    done += count;
  }
}

void give_priorities(std::vector<Slice>& slices, bool backward_order) {
  const auto count = static_cast<std::uint32_t>(slices.size());
  for (std::uint32_t id = 0; id < count; ++id) {
    if (backward_order)
      slices[id].priority = count - 1 - id;
    else
      slices[id].priority = slices[id].kind == TensorKind::statistic ? 0 : id + 1;
  }
}

/// `load`: values of each server before the first slice.
void spread(std::vector<Slice>& slices, std::vector<std::uint64_t> load) {
  for (Slice& slice : slices) {
    const auto lightest = std::min_element(load.begin(), load.end());
    *lightest += slice.count;
    slice.server = {static_cast<ServerId::Rep>(lightest - load.begin())};
  }
}

}  // namespace

std::vector<SliceId> Layout::of(ServerId server) const {
  std::vector<SliceId> ids;
  for (std::uint32_t i = 0; i < slices.size(); ++i)
    if (slices[i].server == server) ids.push_back({i});
  return ids;
}

std::pair<std::size_t, std::size_t> Layout::touching(std::uint64_t first, std::uint64_t last) const {
  const auto ends_after =
      std::partition_point(slices.begin(), slices.end(), [&](const Slice& slice) { return slice.offset + slice.count <= first; });
  const auto begins_at = std::partition_point(ends_after, slices.end(), [&](const Slice& slice) { return slice.offset < last; });
  return {static_cast<std::size_t>(ends_after - slices.begin()), static_cast<std::size_t>(begins_at - slices.begin())};
}

Layout cut(std::span<const TensorPlace> tensors, std::uint64_t slice_values, std::uint32_t servers, const LayoutOptions& layout_options) {
  check(slice_values >= 1, "a slice holds at least one value");
  check(servers >= 1, "there is at least one server");
  require_forward_order(tensors);
  Layout layout;
  layout.servers = servers;
  for (const TensorPlace& tensor : tensors) {
    if (!layout_options.whole_tensors)
      append_pieces(layout.slices, tensor, slice_values);
    else if (tensor.count > 0)
      layout.slices.push_back({tensor.offset, tensor.count, tensor.kind, {}, tensor.least_bits});
    layout.values += tensor.count;
  }
  spread(layout.slices, std::vector<std::uint64_t>(servers));
  give_priorities(layout.slices, layout_options.backward_order);
  return layout;
}

std::vector<std::uint64_t> head_starts(std::span<const double> distances_s, double bytes_per_second) {
  const double nearest = distances_s.empty() ? 0 : *std::min_element(distances_s.begin(), distances_s.end());
  std::vector<std::uint64_t> values;
  for (const double distance : distances_s) {
    const double late = distance - nearest < equal_distance_s ? 0 : (distance - nearest) * bytes_per_second / sizeof(float);
    values.push_back(static_cast<std::uint64_t>(std::llround(std::min(late, largest_head_start))));
  }
  return values;
}

void place(Layout& layout, std::span<const std::uint64_t> head_starts) {
  check(head_starts.size() == layout.servers, "one head start for each server");
  std::vector<std::uint64_t> load(head_starts.begin(), head_starts.end());
  for (std::uint64_t& late : load) late = std::min(late, layout.values / layout.servers / 2);
  Layout placed = layout;
  spread(placed.slices, std::move(load));
  for (std::uint32_t s = 0; s < placed.servers; ++s)
    if (placed.of(ServerId{s}).empty()) return;
  layout = std::move(placed);
}

}  // namespace motley::store
