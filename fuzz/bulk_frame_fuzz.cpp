// The bulk lane's announcements on arbitrary bytes: only messages with a payload are accepted, within the length limits.
#include <array>

#include "fuzzing.h"
#include "transport/bulk_frame.h"

using namespace motley;  // NOLINT(google-build-using-namespace): a program of two functions

namespace {
constexpr std::size_t behind_the_head = 8;  // length and checksum
std::array<std::byte, 1 << 16> payload;     // of the largest allowed size
}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t largest, unsigned seed) {
  return fuzz::mutate(data, size, largest, seed, 0, behind_the_head);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Span bytes = fuzz::bytes_of(data, size);
  const auto parse = [](fuzz::Span some) { return transport::parse_announcement(some, payload.size()); };
  const auto parsed = parse(bytes);
  if (!parsed.ok()) return fuzz::check_refusal(parsed.error()), 0;
  if (const auto* incomplete = std::get_if<wire::Incomplete>(&*parsed)) {
    check(incomplete->more_bytes >= 1, "an incomplete announcement asks for at least one byte");
    check(size + incomplete->more_bytes <= transport::longest_announcement, "an announcement is no longer than longest_announcement");
    return 0;
  }
  const auto& announced = std::get<transport::Announced>(*parsed);
  check(announced.bytes <= std::min(size, transport::longest_announcement),
        "an announcement is no longer than the input and longest_announcement");
  check(announced.payload_bytes <= payload.size(), "no payload is larger than allowed");
  wire::Bytes again;
  transport::append_announcement({.head = announced.head, .payload = std::span(payload).first(announced.payload_bytes)}, announced.checksum,
                                 again);
  check(fuzz::same(again, bytes.first(announced.bytes)), "an announcement has one encoding only");
  fuzz::check_initial_states(again, parse);
  return 0;
}
