#include "transport/stream_bulk.h"

namespace motley::transport {

StreamBulk::StreamBulk(Stream stream, std::size_t largest_payload_bytes)
    : stream_(std::make_shared<Stream>(std::move(stream))), largest_payload_bytes_(largest_payload_bytes) {}

void StreamBulk::serve(Owner& owner) {
  reader_ = std::make_shared<BulkReader>(stream_, owner, largest_payload_bytes_);
  writer_ = std::make_shared<BulkWriter>(stream_, owner);
}

/// The stream stays open: its end would reach the peer before the reason does.
void StreamBulk::detach() {
  reader_->detach();
  writer_->detach();
  boost::system::error_code ignored;
  stream_->cancel(ignored);  // NOLINT(bugprone-unused-return-value): the same error
}

}  // namespace motley::transport
