#include "transport/bulk_frame.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "wire/encode.h"

namespace motley::transport {
namespace {

constexpr std::size_t length_bytes = 4;
constexpr std::size_t checksum_bytes = 4;
constexpr std::size_t trailer_bytes = length_bytes + checksum_bytes;
constexpr wire::Limits limits{.body_bytes = 256};  // a Passed with a long shape has less

bool announces_payload(const wire::Message& head) {
  return std::holds_alternative<wire::Push>(head) || std::holds_alternative<wire::Pulled>(head) ||
         std::holds_alternative<wire::StateChunk>(head) || std::holds_alternative<wire::StageSlice>(head) ||
         std::holds_alternative<wire::ActivationSlice>(head);
}

}  // namespace

void append_announcement(const BulkMessage& bulk_message, wire::Bytes& out) {
  append_announcement(bulk_message, crc32c(bulk_message.payload), out);
}

void append_announcement(const BulkMessage& bulk_message, std::uint32_t checksum, wire::Bytes& out) {
  check(announces_payload(bulk_message.head), "the head of a bulk message announces a payload");
  wire::append(bulk_message.head, out);
  wire::Appender to{out};
  to.put(bulk_message.payload.size(), length_bytes);
  to.put(checksum, checksum_bytes);
}

Outcome check_payload(const Announced& announced, std::span<const std::byte> payload) {
  const std::uint32_t found = crc32c(payload);
  if (found == announced.checksum) return Done{};
  return peer_broken(
      fmt::format("the payload of a {} of {} bytes arrived damaged: checksum {:#010x}, expected {:#010x}; nothing of it is used",
                  wire::name_of(announced.head), payload.size(), found, announced.checksum));
}

Result<std::variant<wire::Incomplete, Announced>> parse_announcement(std::span<const std::byte> bytes, std::size_t largest_payload_bytes) {
  using Answer = std::variant<wire::Incomplete, Announced>;
  Result<wire::Parsed> parsed = wire::parse(bytes, limits);
  if (!parsed.ok()) return parsed.error();
  if (const auto* missing = std::get_if<wire::Incomplete>(&*parsed)) return Answer{wire::Incomplete{missing->more_bytes + trailer_bytes}};
  auto& head = std::get<wire::Complete>(*parsed);
  if (!announces_payload(head.message))
    return peer_broken(
        fmt::format("the bulk lane carries a {}, expected Push, Pulled, StateChunk, StageSlice or Passed", wire::name_of(head.message)));

  const auto rest = bytes.subspan(head.bytes);
  if (rest.size() < trailer_bytes) return Answer{wire::Incomplete{trailer_bytes - rest.size()}};
  wire::Reader in(rest);
  std::uint64_t length = 0;
  std::uint64_t checksum = 0;
  if (!in.take(length, length_bytes) || !in.take(checksum, checksum_bytes)) return peer_broken(in.problem());
  if (length > largest_payload_bytes)
    return peer_broken(
        fmt::format("a {} announces {} bytes, at most {} are allowed", wire::name_of(head.message), length, largest_payload_bytes));
  return Answer{Announced{std::move(head.message), length, static_cast<std::uint32_t>(checksum), head.bytes + trailer_bytes}};
}

}  // namespace motley::transport
