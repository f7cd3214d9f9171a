// Encodes messages as checksummed frames. All bytes from other processes are validated here, once; later code relies on it.
//
//   frame := magic:u32 version:u16 kind:u16 length:u32 | body: length bytes | crc:u32          numbers little-endian
//            'MTLY'    version     place in Message      see encode.h         zlib's CRC-32 of all before it
//
// The payloads of Push and Pulled are sent after their frames, with a checksum of their own (transport/bulk_frame.h).
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

/// The frame is incomplete: at least `more_bytes` (>= 1) are missing.
struct Incomplete {
  std::size_t more_bytes{};
};
/// One message, which took the first `bytes` of the input; the rest belongs to the next call.
struct Complete {
  Message message;
  std::size_t bytes{};
};
using Parsed = std::variant<Incomplete, Complete>;

/// Appends the frame of `message` to `out`. A body beyond Limits{} is a bug.
void append(const Message& message, Bytes& out);

/// Parses the frame at the front of `bytes`. Refuses, as the peer's fault, bytes that can never become a frame: wrong magic, other version,
/// unknown kind, a length beyond the limit, a wrong checksum, a body that is not exactly its message. Allocates nothing before length and
/// checksum are checked.
Result<Parsed> parse(std::span<const std::byte> bytes, const Limits& limits = {});

/// Size of the whole frame, computed without writing it.
[[nodiscard]] std::size_t encoded_bytes(const Message& message);

/// For reports: "Contributed".
[[nodiscard]] std::string_view name_of(const Message& message);

}  // namespace motley::wire
