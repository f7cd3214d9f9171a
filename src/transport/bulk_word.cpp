#include "transport/bulk_word.h"

#include <fmt/format.h>

#include "wire/encode.h"

namespace motley::transport {
namespace {

using Parsed = Result<std::variant<wire::Incomplete, BulkSaid>>;
using Span = std::span<const std::byte>;

enum Tag : std::uint8_t { slice_tag = 0, laid_tag = 1, taken_tag = 2 };
constexpr std::size_t tag_bytes = 1, count_bytes = 4;

Parsed incomplete(std::size_t more) { return {wire::Incomplete{more}}; }

Parsed parse_slice(Span body, std::size_t largest_payload_bytes) {
  auto parsed = parse_announcement(body, largest_payload_bytes);
  if (!parsed.ok()) return parsed.error();
  if (const auto* missing = std::get_if<wire::Incomplete>(&*parsed)) return incomplete(missing->more_bytes);
  auto& announced = std::get<Announced>(*parsed);
  const std::size_t bytes = tag_bytes + announced.bytes;
  return {BulkSaid{std::move(announced), bytes}};
}

template <class Word>
Parsed parse_count(Span body) {
  if (body.size() < count_bytes) return incomplete(count_bytes - body.size());
  wire::Reader in(body);
  std::uint64_t bytes = 0;
  if (!in.take(bytes, count_bytes)) return peer_broken(in.problem());
  return {BulkSaid{Word{static_cast<std::uint32_t>(bytes)}, tag_bytes + count_bytes}};
}

void append_count(Tag tag, std::size_t bytes, wire::Bytes& out) {
  wire::Appender to{out};
  to.put(tag, tag_bytes);
  to.put(bytes, count_bytes);
}

}  // namespace

void append_slice(const Parcel& parcel, wire::Bytes& out) {
  wire::Appender{out}.put(slice_tag, tag_bytes);
  append_announcement(parcel, out);
}
void append_laid(std::size_t bytes, wire::Bytes& out) { append_count(laid_tag, bytes, out); }
void append_taken(std::size_t bytes, wire::Bytes& out) { append_count(taken_tag, bytes, out); }

Parsed parse_word(Span bytes, std::size_t largest_payload_bytes) {
  if (bytes.empty()) return incomplete(tag_bytes);
  const Span body = bytes.subspan(tag_bytes);
  switch (std::to_integer<std::uint8_t>(bytes[0])) {
    case slice_tag: return parse_slice(body, largest_payload_bytes);
    case laid_tag: return parse_count<Laid>(body);
    case taken_tag: return parse_count<Taken>(body);
    default: return peer_broken(fmt::format("the bulk lane carries the unknown word {}", std::to_integer<int>(bytes[0])));
  }
}

}  // namespace motley::transport
