// What the two sides of a shared bulk lane say over its stream while the payloads themselves go through a ring of shared memory.
//
//   word := 0:u8 announcement (bulk_frame.h) | 1:u8 bytes:u32 | 2:u8 bytes:u32        numbers little-endian
//           a slice comes                      so many of its   so many of yours
//                                              bytes are laid   are taken
//
// A slice's bytes are laid after its announcement and before the next one. No checksum: a count that does not add up is refused.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "base/result.h"
#include "transport/bulk_frame.h"
#include "wire/frame.h"

namespace motley::transport {

struct Laid {
  std::uint32_t bytes{};
};
struct Taken {
  std::uint32_t bytes{};
};
using BulkWord = std::variant<Announced, Laid, Taken>;

struct BulkSaid {
  BulkWord word;
  std::size_t bytes{};  // that it took from the front
};

/// No word is longer.
inline constexpr std::size_t longest_word = 1 + longest_announcement;

void append_slice(const Parcel& parcel, wire::Bytes& out);
void append_laid(std::size_t bytes, wire::Bytes& out);
void append_taken(std::size_t bytes, wire::Bytes& out);

/// Reads the front of `bytes`; refuses, as the peer's fault, an unknown word and what parse_announcement() refuses.
Result<std::variant<wire::Incomplete, BulkSaid>> parse_word(std::span<const std::byte> bytes, std::size_t largest_payload_bytes);

}  // namespace motley::transport
