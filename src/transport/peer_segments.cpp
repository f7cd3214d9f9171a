#include "transport/peer_segments.h"

#include <fmt/format.h>

#include <algorithm>

#include "transport/constants.h"
#include "transport/memory_watch.h"

namespace motley::transport {

Outcome PeerSegments::map(const SegmentOffered& offered, const Descriptor& file, const std::function<bool(const SegmentId&)>& is_ours) {
  if (mapped_.contains(offered.segment)) return peer_broken(fmt::format("the peer offers its segment {} twice", offered.segment));
  if (mapped_.size() >= most_peer_segments)
    return peer_broken(fmt::format("the peer offers more than {} segments of memory", most_peer_segments));
  std::size_t mapped_bytes = 0;
  for (const auto& [number, segment] : mapped_) mapped_bytes += segment->bytes().size();
  if (offered.bytes > memory_of_this_machine() - std::min(mapped_bytes, memory_of_this_machine()))
    return peer_broken(fmt::format("the peer offers {} bytes beside {}, more than this machine has", offered.bytes, mapped_bytes));
  Result<std::unique_ptr<Segment>> found = map_segment(file, offered.bytes);
  if (!found.ok()) return found.error();
  if (is_ours(id_of(file))) return peer_broken("the peer offers our own memory");
  mapped_[offered.segment] = watched(std::move(*found));
  return Done{};
}

Result<PeerSegments::Slice> PeerSegments::find(const Borrowed& borrowed) const {
  const auto found = mapped_.find(borrowed.segment);
  const std::size_t bytes = borrowed.slice.payload_bytes;
  const std::size_t size = found == mapped_.end() ? 0 : found->second->bytes().size();
  if (found == mapped_.end() || borrowed.offset % alignof(float) != 0 || borrowed.offset > size || bytes > size - borrowed.offset)
    return peer_broken(fmt::format("the bulk lane names {} bytes at {} of segment {}, which this process has not mapped", bytes,
                                   borrowed.offset, borrowed.segment));
  return Slice{found->second->bytes().subspan(borrowed.offset, bytes), found->second};
}

}  // namespace motley::transport
