// The byte format of the bulk lane: a message that describes the slice, its length and checksum, and its payload.
//
//   bulk := frame (wire/frame.h: Push, Pulled, StateChunk, StageSlice or Passed) | length:u32 checksum:u32 | payload: length bytes
//                                                                            CRC-32C of the payload       numbers little-endian
//
// TCP's own checksum has 16 bits and is recomputed by network devices; an undetected wrong float corrupts the model. Computing this one is
// several times faster than sending the payload (`motley bench transport`).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "base/result.h"
#include "transport/transport.h"
#include "wire/frame.h"

namespace motley::transport {

/// Precedes a payload.
struct Announced {
  wire::Message head;
  std::size_t payload_bytes{};
  std::uint32_t checksum{};  // of the payload; unused when it is read in place
  std::size_t bytes{};       // that the announcement took from the front
};

/// No announcement is longer: a lane that reads ahead this many bytes always has a whole one.
inline constexpr std::size_t longest_announcement = 512;

/// Appends the announcement of the message, reading its payload once for the checksum.
void append_announcement(const BulkMessage& bulk_message, wire::Bytes& out);
/// The same with a known checksum, or 0 for a payload that is read in place.
void append_announcement(const BulkMessage& bulk_message, std::uint32_t checksum, wire::Bytes& out);

/// An error, as the peer's fault, unless the payload has the announced checksum.
[[nodiscard]] Outcome check_payload(const Announced& announced, std::span<const std::byte> payload);

/// Reads the front of `bytes`. Refuses, as the peer's fault, anything wire::parse refuses, any other message, and a length beyond the
/// limit, before memory is allocated.
Result<std::variant<wire::Incomplete, Announced>> parse_announcement(std::span<const std::byte> bytes, std::size_t largest_payload_bytes);

}  // namespace motley::transport
