// The byte format of the control lane: a tag and its content. Messages are encoded as wire frames; credits and the goodbye are defined
// here.
//
//   control := 0:u8 frame (wire/frame.h) | 1:u8 bytes:u64 | 2:u8 length:u8 text        numbers little-endian
//              a message                   credit            goodbye
//
// A credit has no checksum: SendCredits refuses an impossible one (credits.h), and TCP's checksum covers the rest.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "wire/frame.h"

namespace motley::transport {

/// Allows the peer to send this many more payload bytes.
struct Credit {
  std::uint64_t bytes{};
};
/// The last frame of a lane: why its sender closes.
struct Goodbye {
  std::string reason;
};
using ControlFrame = std::variant<wire::Message, Credit, Goodbye>;

struct ParsedControlFrame {
  ControlFrame frame;
  std::size_t bytes{};  // that it took from the front
};

void append_message(const wire::Message& message, wire::Bytes& out);
void append_credit(std::uint64_t bytes, wire::Bytes& out);
/// A reason is cut to 255 bytes.
void append_goodbye(std::string_view reason, wire::Bytes& out);

/// Reads the front of `bytes`, as wire::parse does: an Incomplete names how many more are needed, an error is the peer's fault.
Result<std::variant<wire::Incomplete, ParsedControlFrame>> parse_control(std::span<const std::byte> bytes);

}  // namespace motley::transport
