// The bulk lane between two processes of one host: payloads go through a ring of shared memory each way, copied in by the one and out by
// the other, and the stream carries only words about them (bulk_word.h). What lies in memory that can be lent (shared_arena.h) is not even
// copied: the peer maps that memory and reads in it until it says that it is done. The stream's end tells of a dead peer, as on every lane;
// nobody ever waits inside the shared memory itself, so nothing there can hang. Memory that was lent to somebody who is lost keeps its
// content for good: whoever it was may be reading still.
#pragma once
#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/bulk_lane.h"
#include "transport/bulk_word.h"
#include "transport/descriptor_passing.h"
#include "transport/returned_borrows.h"
#include "transport/segment.h"
#include "transport/shared_ring.h"
#include "transport/stream.h"

namespace motley::transport {

/// The two rings of a lane. Theirs is written by the peer, whatever it likes; only payloads are read from it.
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
  [[nodiscard]] std::size_t writing_bytes() const override;

 private:
  struct Writing {
    BulkMessage bulk_message;
    std::size_t written_bytes = 0;
  };
  struct Filling {
    Announced slice;
    std::span<std::byte> place;
    std::span<std::byte> rest;  // of it, not yet filled
  };

  asio::awaitable<void> read(std::shared_ptr<SharedBulk> self);
  asio::awaitable<bool> read_more();
  bool hear_all_read();
  void hear(Announced slice);
  void hear(const BytesWritten& written);
  void hear(const Taken& taken);
  void hear(const SegmentOffered& offered);
  Result<std::unique_ptr<Segment>> take_offered(const SegmentOffered& offered);
  void hear(const Borrowed& borrowed);
  void hear(const Returned& returned);
  void hear(const Withdrawn& withdrawn) { mapped_.erase(withdrawn.segment); }
  void finish_if_filled();

  asio::awaitable<void> write(std::shared_ptr<SharedBulk> self);
  asio::awaitable<bool> write_words();
  bool gather_words();
  bool begin_next();
  bool offer_borrow(const BulkMessage& bulk_message);
  void withdraw_what_is_gone();
  void report_done();
  void lose(const Error& why);

  Stream stream_;
  Rings rings_;
  RingWriter out_;
  RingReader in_;
  Owner* owner_ = nullptr;  // null before serve() and once detached
  std::size_t largest_payload_bytes_;

  // reading
  static constexpr std::size_t input_bytes = 16 << 10;  // some hundred words at once
  static_assert(input_bytes >= longest_word);
  std::array<std::byte, input_bytes> input_{};
  std::size_t input_used_ = 0;  // read and not yet whole words
  std::optional<Filling> filling_;
  std::size_t owed_bytes_ = 0;                                // taken and not yet told
  std::map<std::uint32_t, std::shared_ptr<Segment>> mapped_;  // memory of the peer, by its number
  std::deque<Descriptor> files_;                              // came, and the word that they go with is not whole yet
  std::shared_ptr<ReturnedBorrows> returned_borrows_;

  // writing
  bool runs_ = false;
  std::optional<Writing> writing_;
  std::vector<BulkMessage> done_;  // laid whole, to be reported once the words are out
  wire::Bytes words_;
  std::vector<AttachedFile> words_files_;
  struct BorrowedMessage {
    BulkMessage bulk_message;
    std::uint32_t segment{};
  };
  std::map<std::uint32_t, BorrowedMessage> borrowed_;  // by loan
  std::uint32_t next_borrow_ = 0;
  std::map<std::uint32_t, SegmentId> offered_;  // segments of ours that the peer knows
  std::uint64_t gone_ = 0;                      // of them, as of the last look
};

}  // namespace motley::transport
