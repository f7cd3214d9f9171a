// Shared by the fuzz targets: input as bytes, checks for every parser of frames, and a mutator that repairs the head and checksum of a
// frame, because almost no other mutation would pass them. A violated check throws, and libFuzzer reports it.
#pragma once
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "base/result.h"
#include "wire/frame.h"

/// libFuzzer's own mutations; returns the new size.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t largest);

namespace motley::fuzz {

using Span = std::span<const std::byte>;

inline Span bytes_of(const std::uint8_t* data, std::size_t size) { return std::as_bytes(std::span(data, size)); }

inline bool same(Span a, Span b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

/// Invalid bytes of a peer are refused with a reason, as the peer's fault.
inline void check_refusal(const Error& error) {
  check(error.next == Next::drop_peer, "invalid bytes are the peer's fault");
  check(!error.message.empty(), "a refusal has a reason");
}

/// Every proper prefix of a valid frame is incomplete and asks for no byte beyond its end, so that a reader never waits for too many bytes.
template <class Parse>
void check_initial_states(Span whole, Parse parse) {
  constexpr std::size_t most = 512;  // longer prefixes only differ in the length of the body
  for (std::size_t n = 0; n < std::min(whole.size(), most); ++n) {
    const auto parsed = parse(whole.first(n));
    check(parsed.ok(), "a prefix of a valid frame is not refused");
    const auto* incomplete = std::get_if<wire::Incomplete>(&*parsed);
    check(incomplete != nullptr, "a proper prefix of a frame is not a frame");
    check(incomplete->more_bytes >= 1 && n + incomplete->more_bytes <= whole.size(), "an incomplete frame asks for missing bytes only");
  }
}

/// Writes head and checksum of a frame over the bytes from `at` to `behind` before the end; kind and body stay. Does nothing when it is too
/// short.
inline void reseal(std::span<std::uint8_t> data, std::size_t at, std::size_t behind) {
  constexpr std::size_t kind_at = 6, kind_bytes = 2, length_at = 8, head_bytes = 12, crc_bytes = 4;
  static constexpr std::uint8_t magic_and_version[kind_at] = {'M', 'T', 'L', 'Y', wire::version & 0xffU, wire::version >> 8U};
  if (data.size() < at + head_bytes + crc_bytes + behind) return;
  const std::span<std::uint8_t> frame = data.subspan(at, data.size() - at - behind);
  const auto put = [&](std::size_t place, std::size_t number) {
    for (std::size_t i = 0; i < 4; ++i) frame[place + i] = static_cast<std::uint8_t>(number >> (8 * i));
  };
  std::copy(std::begin(magic_and_version), std::end(magic_and_version), frame.begin());
  frame[kind_at] %= std::variant_size_v<wire::Message>;
  std::fill_n(frame.begin() + kind_at + 1, kind_bytes - 1, std::uint8_t{0});
  put(length_at, frame.size() - head_bytes - crc_bytes);
  put(frame.size() - crc_bytes, crc32_z(0, frame.data(), frame.size() - crc_bytes));
}

/// Mutates the input; in three of four cases the frame is made valid again.
inline std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t largest, unsigned seed, std::size_t at, std::size_t behind) {
  size = LLVMFuzzerMutate(data, size, largest);
  if (seed % 4 != 0) reseal({data, size}, at, behind);
  return size;
}

}  // namespace motley::fuzz
