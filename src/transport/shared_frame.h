// The frames that two ends of a shared-memory bulk lane exchange over its stream while payloads go through rings of shared memory.
//
//   frame := 0:u8 announcement (bulk_frame.h)                    a slice follows through the ring
//          | 1:u8 bytes:u32                                      this many of its bytes were written to the ring
//          | 2:u8 bytes:u32                                      this many bytes were read from the ring
//          | 3:u8 segment:u32 bytes:u64                          offers a segment; its descriptor comes with the first byte
//          | 4:u8 segment:u32 offset:u64 borrow:u32 announcement a slice to be read in place in that segment
//          | 5:u8 borrow:u32                                     the slice is no longer read in place
//          | 6:u8 segment:u32                                    no further slice will lie in the segment
//   numbers little-endian
//
// All bytes of a slice are written between its announcement and the next one. They are copied twice, so they carry a checksum. A borrowed
// slice has none (the field is 0): nothing is copied, and a checksum would be computed from the very memory that the receiver reads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "base/result.h"
#include "transport/bulk_frame.h"
#include "wire/frame.h"

namespace motley::transport {

struct BytesWritten {
  std::uint32_t bytes{};
};
struct BytesTaken {
  std::uint32_t bytes{};
};
struct SegmentOffered {
  std::uint32_t segment{};
  std::uint64_t bytes{};
};
struct Borrowed {
  std::uint32_t segment{};
  std::uint64_t offset{};
  std::uint32_t borrow{};
  Announced slice;
};
struct Returned {
  std::uint32_t borrow{};
};
struct Withdrawn {
  std::uint32_t segment{};
};
using SharedFrame = std::variant<Announced, BytesWritten, BytesTaken, SegmentOffered, Borrowed, Returned, Withdrawn>;

struct ParsedSharedFrame {
  SharedFrame frame;
  std::size_t bytes{};  // that it took from the front
};

/// The size of the largest frame.
inline constexpr std::size_t longest_shared_frame = 1 + 4 + 8 + 4 + longest_announcement;

void append_slice(const BulkMessage& bulk_message, wire::Bytes& out);
void append_written(std::size_t bytes, wire::Bytes& out);
void append_taken(std::size_t bytes, wire::Bytes& out);
void append_offered(std::uint32_t segment, std::uint64_t bytes, wire::Bytes& out);
void append_borrowed(std::uint32_t segment, std::uint64_t offset, std::uint32_t borrow, const BulkMessage& bulk_message, wire::Bytes& out);
void append_returned(std::uint32_t borrow, wire::Bytes& out);
void append_withdrawn(std::uint32_t segment, wire::Bytes& out);

/// Reads the front of `bytes`; refuses, as the peer's fault, an unknown tag and what parse_announcement() refuses.
Result<std::variant<wire::Incomplete, ParsedSharedFrame>> parse_shared_frame(std::span<const std::byte> bytes,
                                                                             std::size_t largest_payload_bytes);

}  // namespace motley::transport
