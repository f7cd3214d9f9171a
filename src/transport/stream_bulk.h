// The bulk lane on a stream: payloads are sent in the stream itself, in frames (bulk_frame.h).
#pragma once
#include <memory>

#include "transport/bulk_lane.h"
#include "transport/bulk_reader.h"
#include "transport/bulk_writer.h"
#include "transport/stream.h"

namespace motley::transport {

class StreamBulk final : public BulkLane {
 public:
  StreamBulk(Stream stream, std::size_t largest_payload_bytes);

  void serve(Owner& owner) override;
  void start_reading() override { reader_->start(); }
  void wake() override { writer_->wake(); }
  void detach() override;
  void close() override { close_quietly(*stream_); }
  [[nodiscard]] std::size_t writing_bytes() const override { return writer_->writing_bytes(); }

 private:
  std::shared_ptr<Stream> stream_;
  std::size_t largest_payload_bytes_;
  std::shared_ptr<BulkReader> reader_;  // both from serve() on
  std::shared_ptr<BulkWriter> writer_;
};

}  // namespace motley::transport
