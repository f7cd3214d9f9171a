#include "transport/shared_frame.h"

#include <fmt/format.h>

#include "wire/encode.h"

namespace motley::transport {
namespace {

using Parsed = Result<std::variant<wire::Incomplete, ParsedSharedFrame>>;
using Span = std::span<const std::byte>;

enum Tag : std::uint8_t { slice_tag, written_tag, taken_tag, offered_tag, borrowed_tag, returned_tag, withdrawn_tag };
constexpr std::size_t tag_bytes = 1, count_bytes = 4, large_bytes = 8;

Parsed incomplete(std::size_t more) { return {wire::Incomplete{more}}; }

Parsed parse_slice(Span body, std::size_t largest_payload_bytes) {
  auto parsed = parse_announcement(body, largest_payload_bytes);
  if (!parsed.ok()) return parsed.error();
  if (const auto* missing = std::get_if<wire::Incomplete>(&*parsed)) return incomplete(missing->more_bytes);
  auto& announced = std::get<Announced>(*parsed);
  const std::size_t bytes = tag_bytes + announced.bytes;
  return {ParsedSharedFrame{std::move(announced), bytes}};
}

template <class Frame>
Parsed parse_count(Span body) {
  if (body.size() < count_bytes) return incomplete(count_bytes - body.size());
  wire::Reader in(body);
  std::uint64_t bytes = 0;
  if (!in.take(bytes, count_bytes)) return peer_broken(in.problem());
  return {ParsedSharedFrame{Frame{static_cast<std::uint32_t>(bytes)}, tag_bytes + count_bytes}};
}

Parsed parse_offered(Span body) {
  constexpr std::size_t fixed = count_bytes + large_bytes;
  if (body.size() < fixed) return incomplete(fixed - body.size());
  wire::Reader in(body);
  std::uint64_t segment = 0, bytes = 0;
  if (!in.take(segment, count_bytes) || !in.take(bytes, large_bytes)) return peer_broken(in.problem());
  return {ParsedSharedFrame{SegmentOffered{static_cast<std::uint32_t>(segment), bytes}, tag_bytes + fixed}};
}

Parsed parse_borrowed(Span body, std::size_t largest_payload_bytes) {
  constexpr std::size_t fixed = count_bytes + large_bytes + count_bytes;
  if (body.size() < fixed) return incomplete(fixed - body.size());
  wire::Reader in(body);
  std::uint64_t segment = 0, offset = 0, borrow = 0;
  if (!in.take(segment, count_bytes) || !in.take(offset, large_bytes) || !in.take(borrow, count_bytes)) return peer_broken(in.problem());
  auto parsed = parse_slice(body.subspan(fixed), largest_payload_bytes);
  if (!parsed.ok() || std::holds_alternative<wire::Incomplete>(*parsed)) return parsed;
  auto& slice = std::get<ParsedSharedFrame>(*parsed);
  return {ParsedSharedFrame{Borrowed{static_cast<std::uint32_t>(segment), offset, static_cast<std::uint32_t>(borrow),
                                     std::get<Announced>(std::move(slice.frame))},
                            fixed + slice.bytes}};
}

void append_count(Tag tag, std::size_t bytes, wire::Bytes& out) {
  wire::Appender to{out};
  to.put(tag, tag_bytes);
  to.put(bytes, count_bytes);
}

}  // namespace

void append_slice(const BulkMessage& bulk_message, wire::Bytes& out) {
  wire::Appender{out}.put(slice_tag, tag_bytes);
  append_announcement(bulk_message, out);
}
void append_written(std::size_t bytes, wire::Bytes& out) { append_count(written_tag, bytes, out); }
void append_taken(std::size_t bytes, wire::Bytes& out) { append_count(taken_tag, bytes, out); }

void append_offered(std::uint32_t segment, std::uint64_t bytes, wire::Bytes& out) {
  append_count(offered_tag, segment, out);
  wire::Appender{out}.put(bytes, large_bytes);
}
void append_borrowed(std::uint32_t segment, std::uint64_t offset, std::uint32_t borrow, const BulkMessage& bulk_message, wire::Bytes& out) {
  append_count(borrowed_tag, segment, out);
  wire::Appender to{out};
  to.put(offset, large_bytes);
  to.put(borrow, count_bytes);
  append_announcement(bulk_message, 0, out);
}
void append_returned(std::uint32_t borrow, wire::Bytes& out) { append_count(returned_tag, borrow, out); }
void append_withdrawn(std::uint32_t segment, wire::Bytes& out) { append_count(withdrawn_tag, segment, out); }

Parsed parse_shared_frame(Span bytes, std::size_t largest_payload_bytes) {
  if (bytes.empty()) return incomplete(tag_bytes);
  const Span body = bytes.subspan(tag_bytes);
  switch (std::to_integer<std::uint8_t>(bytes[0])) {
    case slice_tag: return parse_slice(body, largest_payload_bytes);
    case written_tag: return parse_count<BytesWritten>(body);
    case taken_tag: return parse_count<BytesTaken>(body);
    case offered_tag: return parse_offered(body);
    case borrowed_tag: return parse_borrowed(body, largest_payload_bytes);
    case returned_tag: return parse_count<Returned>(body);
    case withdrawn_tag: return parse_count<Withdrawn>(body);
    default: return peer_broken(fmt::format("the bulk lane carries the unknown tag {}", std::to_integer<int>(bytes[0])));
  }
}

}  // namespace motley::transport
