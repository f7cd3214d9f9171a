#include "transport/control_frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "wire/encode.h"

namespace motley::transport {
namespace {

using Parsed = Result<std::variant<wire::Incomplete, ParsedControlFrame>>;
using Span = std::span<const std::byte>;

enum Tag : std::uint8_t { message_tag = 0, credit_tag = 1, goodbye_tag = 2 };
constexpr std::size_t tag_bytes = 1, credit_bytes = 8, length_bytes = 1, longest_reason = 255;

Parsed incomplete(std::size_t more) { return {wire::Incomplete{more}}; }
Parsed whole(ControlFrame frame, std::size_t body) { return {ParsedControlFrame{std::move(frame), tag_bytes + body}}; }

Parsed parse_message(Span body) {
  Result<wire::Parsed> parsed = wire::parse(body);
  if (!parsed.ok()) return parsed.error();
  if (const auto* missing = std::get_if<wire::Incomplete>(&*parsed)) return incomplete(missing->more_bytes);
  auto& complete = std::get<wire::Complete>(*parsed);
  return whole(std::move(complete.message), complete.bytes);
}

Parsed parse_credit(Span body) {
  if (body.size() < credit_bytes) return incomplete(credit_bytes - body.size());
  wire::Reader in(body);
  Credit credit;
  if (!in.take(credit.bytes, credit_bytes)) return peer_broken(in.problem());
  return whole(credit, credit_bytes);
}

/// Replaces control characters in another process's text.
std::string printable(Span text) {
  std::string out;
  for (std::byte b : text) {
    const char c = static_cast<char>(b);
    out.push_back(c >= ' ' && c <= '~' ? c : '?');
  }
  return out;
}

Parsed parse_goodbye(Span body) {
  if (body.size() < length_bytes) return incomplete(length_bytes);
  const std::size_t length = std::to_integer<std::size_t>(body[0]), all = length_bytes + length;
  if (body.size() < all) return incomplete(all - body.size());
  return whole(Goodbye{printable(body.subspan(length_bytes, length))}, all);
}

}  // namespace

void append_message(const wire::Message& message, wire::Bytes& out) {
  wire::Appender{out}.put(message_tag, tag_bytes);
  wire::append(message, out);
}

void append_credit(std::uint64_t bytes, wire::Bytes& out) {
  wire::Appender to{out};
  to.put(credit_tag, tag_bytes);
  to.put(bytes, credit_bytes);
}

void append_goodbye(std::string_view reason, wire::Bytes& out) {
  reason = reason.substr(0, longest_reason);
  wire::Appender to{out};
  to.put(goodbye_tag, tag_bytes);
  to.put(reason.size(), length_bytes);
  for (char c : reason) out.push_back(static_cast<std::byte>(c));
}

Parsed parse_control(Span bytes) {
  if (bytes.empty()) return incomplete(tag_bytes);
  const Span body = bytes.subspan(tag_bytes);
  switch (std::to_integer<std::uint8_t>(bytes[0])) {
    case message_tag: return parse_message(body);
    case credit_tag: return parse_credit(body);
    case goodbye_tag: return parse_goodbye(body);
    default: return peer_broken(fmt::format("the control lane carries the unknown tag {}", std::to_integer<int>(bytes[0])));
  }
}

}  // namespace motley::transport
