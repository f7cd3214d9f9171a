// A message as bytes that can be told from noise. All bytes from other processes are checked here, once; beyond this line they are trusted.
//
//   frame := magic:u32 version:u16 kind:u16 length:u32 | body: length bytes | crc:u32          numbers little-endian
//            'MTLY'    version     place in Message      see encode.h         zlib's CRC-32 of all before it
//
// The payloads of Push and Pulled travel beside their frames, with a checksum of their own (transport/bulk_frame.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "wire/message.h"

namespace motley::wire {

using Bytes = std::vector<std::byte>;

/// Another one whenever a message changes: peers, and recordings, of others are told apart.
inline constexpr std::uint16_t version = 4;

struct Limits {
  std::uint32_t body_bytes = 1 << 20;  // our largest message, an Apply of 10,000 parts, has 200 kB
};

/// The frame is not all there yet: at least `more_bytes` (>= 1) are missing.
struct Incomplete {
  std::size_t more_bytes{};
};
/// One message, which took the first `bytes` of what was given; the rest is for the next call.
struct Complete {
  Message message;
  std::size_t bytes{};
};
using Parsed = std::variant<Incomplete, Complete>;

/// Appends the frame of `message` to `out`. A body beyond Limits{} is our bug.
void append(const Message& message, Bytes& out);

/// Reads the frame at the front of `bytes`. What can never become a frame is refused as the peer's fault: wrong magic, other version,
/// unknown kind, a length beyond the limit, a checksum that does not match, a body that is not its message or is longer than it.
/// Allocates nothing before length and checksum are found good.
Result<Parsed> parse(std::span<const std::byte> bytes, const Limits& limits = {});

/// Size of the whole frame, without writing it.
[[nodiscard]] std::size_t encoded_bytes(const Message& message);

/// "Contributed". For reports.
[[nodiscard]] std::string_view name_of(const Message& message);

}  // namespace motley::wire
