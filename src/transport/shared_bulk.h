// The bulk lane between two processes of one host: payloads are copied through a ring of shared memory in each direction, and the stream
// carries only frames about them (shared_frame.h). A payload in the shared arena (shared_arena.h) is not copied at all: the peer maps that
// memory and reads it in place until it returns the borrow. Nothing waits inside shared memory, so nothing there can hang; the end of the
// stream reports a dead peer, as on every lane. Memory borrowed by a lost peer is never written again, because the peer may still read it.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "transport/bulk_lane.h"
#include "transport/outgoing_borrows.h"
#include "transport/peer_segments.h"
#include "transport/returned_borrows.h"
#include "transport/ring_slices.h"
#include "transport/segment.h"
#include "transport/shared_frame_reader.h"
#include "transport/stream.h"

namespace motley::transport {

/// The two rings of a lane. The peer may write anything into its own; only payloads are read from it.
struct Rings {
  std::unique_ptr<Segment> ours;
  std::unique_ptr<Segment> theirs;
  SegmentId our_id{};
};

class SharedBulk final : public BulkLane, public std::enable_shared_from_this<SharedBulk> {
 public:
  SharedBulk(Stream stream, Rings rings, std::size_t largest_payload_bytes);
  SharedBulk(const SharedBulk&) = delete;
  SharedBulk& operator=(const SharedBulk&) = delete;
  ~SharedBulk() override;

  void serve(Owner& owner) override { owner_ = &owner; }
  void start_reading() override;
  void wake() override;
  void detach() override;
  void close() override { close_quietly(stream_); }
  [[nodiscard]] bool supports_borrowing() const override { return true; }
  [[nodiscard]] std::size_t writing_bytes() const override { return sender_.pending_bytes(); }

 private:
  asio::awaitable<void> read(std::shared_ptr<SharedBulk> self);
  asio::awaitable<bool> read_more();
  bool handle_frames();
  void on_frame(Announced slice);
  void on_frame(const BytesWritten& written);
  void on_frame(const BytesTaken& taken);
  void on_frame(const SegmentOffered& offered);
  void on_frame(const Borrowed& borrowed);
  void on_frame(const Returned& returned);
  void on_frame(const Withdrawn& withdrawn) { peer_segments_.unmap(withdrawn.segment); }
  void deliver_if_complete();

  asio::awaitable<void> write(std::shared_ptr<SharedBulk> self);
  asio::awaitable<bool> write_frames();
  bool gather_frames();
  bool begin_next();
  void report_completed();
  void lose(const Error& why);

  Stream stream_;
  Rings rings_;
  Owner* owner_ = nullptr;  // null before serve() and once detached

  SharedFrameReader reader_;
  RingReceiver receiver_;
  PeerSegments peer_segments_;
  std::shared_ptr<ReturnedBorrows> returned_borrows_;

  RingSender sender_;
  OutgoingBorrows outgoing_borrows_;
  bool writer_runs_ = false;
  wire::Bytes frames_;  // of this round of writing
  std::vector<AttachedFile> frame_files_;
};

}  // namespace motley::transport
