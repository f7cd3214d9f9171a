// The bulk lane's bytes: what a slice is, how long, and the slice itself.
//
//   bulk := frame (wire/frame.h: Push, Pulled, Carried, StageSlice or Passed) | length:u32 | payload: length bytes        numbers
//   little-endian
//
// The payload is guarded by its length alone: TCP's checksum and, where it is on, TLS's cover it already, and a second pass over every
// byte would cost as much as the sending. The head has its own checksum because acting on a wrong slice id is worse than on a wrong float.
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
  std::size_t bytes{};  // that the announcement took from the front
};

/// No announcement is longer: a lane that reads so much ahead always has one whole.
inline constexpr std::size_t longest_announcement = 512;

/// Appends all of the parcel but its payload.
void append_announcement(const Parcel& parcel, wire::Bytes& out);

/// Reads the front of `bytes`. Refuses, as the peer's fault, what wire::parse refuses, any other message, and a length
/// beyond the limit: before anything is allocated for it.
Result<std::variant<wire::Incomplete, Announced>> parse_announcement(std::span<const std::byte> bytes, std::size_t largest_payload_bytes);

}  // namespace motley::transport
