#include "transport/segment.h"

namespace motley::transport {
namespace {

Error none() {
  return world_failed("this build of Motley has no UCX; install libucx-dev and build with -DMOTLEY_UCX=ON, or use --bulk tcp");
}

}  // namespace

bool has_segments() { return false; }
Result<SharedSegment> make_segment(std::size_t) { return none(); }
Result<std::unique_ptr<Segment>> find_segment(std::span<const std::byte>, std::size_t) { return none(); }

}  // namespace motley::transport
