// The sending half of a bulk lane on a stream: asks its owner for the next bulk message when the stream is writable, and writes
// announcement and payload without copying the payload. Small messages share a system call. Lives as long as its coroutine; after detach()
// the owner is not called again.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "transport/bulk_lane.h"
#include "transport/stream.h"
#include "transport/transport.h"
#include "wire/frame.h"

namespace motley::transport {

class BulkWriter : public std::enable_shared_from_this<BulkWriter> {
 public:
  using Owner = BulkLane::Owner;

  BulkWriter(std::shared_ptr<Stream> stream, Owner& owner) : stream_(std::move(stream)), owner_(&owner) {}

  /// There may be a next bulk message. Errors of writing are not reported: the reading half learns the reason.
  void wake();
  void detach() { owner_ = nullptr; }

  [[nodiscard]] std::size_t writing_bytes() const;

 private:
  asio::awaitable<void> write(std::shared_ptr<BulkWriter> self);
  asio::awaitable<bool> until_writable();
  asio::awaitable<bool> write_batch();
  bool pick_batch();
  void report_batch();

  std::shared_ptr<Stream> stream_;
  Owner* owner_;  // null once detached
  bool runs_ = false;
  std::vector<BulkMessage> batch_;
  wire::Bytes announcements_;                       // of the batch, one after the other
  std::vector<boost::asio::const_buffer> buffers_;  // announcement, payload, announcement, payload...
};

}  // namespace motley::transport
