// Reads the frames of a shared-memory bulk lane from its stream, with the file descriptors that are passed beside them.
#pragma once
#include <array>
#include <cstddef>
#include <deque>
#include <optional>

#include "transport/constants.h"
#include "transport/descriptor_passing.h"
#include "transport/shared_frame.h"
#include "transport/stream.h"

namespace motley::transport {

class SharedFrameReader {
 public:
  explicit SharedFrameReader(std::size_t largest_payload_bytes) : largest_payload_bytes_(largest_payload_bytes) {}

  /// Reads what the stream has, at least one byte. Both live until it is done.
  asio::awaitable<boost::system::error_code> read_some(Stream& stream);
  /// The next whole frame; none: more must be read first. Refuses what parse_shared_frame() refuses.
  Result<std::optional<SharedFrame>> next();
  /// The oldest descriptor that no frame has claimed.
  std::optional<Descriptor> take_file();
  [[nodiscard]] std::size_t unclaimed_files() const { return files_.size(); }

 private:
  static_assert(shared_frame_buffer_bytes >= longest_shared_frame);
  std::size_t largest_payload_bytes_;
  std::array<std::byte, shared_frame_buffer_bytes> input_{};  // read and not yet parsed: [begin, end)
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::deque<Descriptor> files_;
};

}  // namespace motley::transport
