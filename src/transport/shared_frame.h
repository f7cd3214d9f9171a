// What the two sides of a shared bulk lane say over its stream while the payloads themselves go through a ring of shared memory.
//
//   word := 0:u8 announcement (bulk_frame.h)                             a slice comes
//         | 1:u8 bytes:u32                                               so many of its bytes are laid
//         | 2:u8 bytes:u32                                               so many of yours are taken
//         | 3:u8 segment:u32 bytes:u64                                   memory of ours that you may map: with its first byte goes its
//         descriptor | 4:u8 segment:u32 offset:u64 loan:u32 announcement            a slice lies there, and is lent | 5:u8 loan:u32 no
//         longer needed | 6:u8 segment:u32                                             nothing more will lie there        numbers
//         little-endian
//
// A slice's bytes are laid after its announcement and before the next one; they are copied twice and have their checksum. What is lent has
// none (its field is 0): not a byte of it moves, and a checksum would be made of the very cells that the reader reads.
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
struct Taken {
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
using BulkWord = std::variant<Announced, BytesWritten, Taken, SegmentOffered, Borrowed, Returned, Withdrawn>;

struct ParsedBulkWord {
  BulkWord word;
  std::size_t bytes{};  // that it took from the front
};

/// No word is longer.
inline constexpr std::size_t longest_word = 1 + 4 + 8 + 4 + longest_announcement;

void append_slice(const BulkMessage& bulk_message, wire::Bytes& out);
void append_written(std::size_t bytes, wire::Bytes& out);
void append_taken(std::size_t bytes, wire::Bytes& out);
void append_offered(std::uint32_t segment, std::uint64_t bytes, wire::Bytes& out);
void append_borrowed(std::uint32_t segment, std::uint64_t offset, std::uint32_t borrow, const BulkMessage& bulk_message, wire::Bytes& out);
void append_returned(std::uint32_t borrow, wire::Bytes& out);
void append_withdrawn(std::uint32_t segment, wire::Bytes& out);

/// Reads the front of `bytes`; refuses, as the peer's fault, an unknown word and what parse_announcement() refuses.
Result<std::variant<wire::Incomplete, ParsedBulkWord>> parse_word(std::span<const std::byte> bytes, std::size_t largest_payload_bytes);

}  // namespace motley::transport
