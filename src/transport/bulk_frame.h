// The bulk lane's bytes: what a slice is, how long, and the slice itself.
//
//   bulk := frame (wire/frame.h: Push, Pulled, StateChunk, StageSlice or Passed) | length:u32 checksum:u32 | payload: length bytes
//                                                                            CRC-32C of the payload       numbers little-endian
//
// TCP's own checksum has 16 bits and is made anew by every device on the way that touches the bytes; a wrong float is a wrong model. The
// processor computes this one several times faster than the payload travels (`motley bench transport`).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "base/result.h"
#include "transport/transport.h"
#include "wire/frame.h"

namespace motley::transport {

/// A payload is about to come.
struct Announced {
  wire::Message head;
  std::size_t payload_bytes{};
  std::uint32_t checksum{};  // of the payload, where it travels
  std::size_t bytes{};       // that the announcement took from the front
};

/// No announcement is longer: a lane that reads so much ahead always has one whole.
inline constexpr std::size_t longest_announcement = 512;

/// Appends all of the parcel but its payload, over which it goes once.
void append_announcement(const BulkMessage& bulk_message, wire::Bytes& out);
/// The same of a payload that does not travel, or whose checksum is known.
void append_announcement(const BulkMessage& bulk_message, std::uint32_t checksum, wire::Bytes& out);

/// What is wrong with a payload that has arrived, as the peer's fault; nothing: it is what was announced.
[[nodiscard]] Outcome check_payload(const Announced& announced, std::span<const std::byte> payload);

/// Reads the front of `bytes`. Refuses, as the peer's fault, what wire::parse refuses, any other message, and a length
/// beyond the limit: before anything is allocated for it.
Result<std::variant<wire::Incomplete, Announced>> parse_announcement(std::span<const std::byte> bytes, std::size_t largest_payload_bytes);

}  // namespace motley::transport
