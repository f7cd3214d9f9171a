// What the fuzz targets share: input as bytes, the law of everything that reads frames from a stream, and a mutator that repairs a frame's
// head and checksum, for else almost no mutation would get past them. A broken promise is a check(), whose exception libFuzzer reports.
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

/// Bytes from a peer are refused with a reason, and only the peer is to blame.
inline void check_refusal(const Error& error) {
  check(error.next == Next::drop_peer, "bytes that are no frame are the peer's fault");
  check(!error.message.empty(), "a refusal says why");
}

/// Every beginning of a good frame is incomplete and asks for no byte beyond its end: who waits for what was asked never waits too long.
template <class Parse>
void check_initial_states(Span whole, Parse parse) {
  constexpr std::size_t most = 512;  // beyond, more of the body is the same again
  for (std::size_t n = 0; n < std::min(whole.size(), most); ++n) {
    const auto parsed = parse(whole.first(n));
    check(parsed.ok(), "the beginning of a good frame is not refused");
    const auto* incomplete = std::get_if<wire::Incomplete>(&*parsed);
    check(incomplete != nullptr, "the beginning of a frame is not a frame");
    check(incomplete->more_bytes >= 1 && n + incomplete->more_bytes <= whole.size(), "an incomplete frame asks for what is missing of it");
  }
}

/// Gives the bytes from `at` to `behind` before the end the head and checksum of a frame; its kind and body stay. Nothing when too short.
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

/// Mutates; three times out of four makes the frame whole again.
inline std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t largest, unsigned seed, std::size_t at, std::size_t behind) {
  size = LLVMFuzzerMutate(data, size, largest);
  if (seed % 4 != 0) reseal({data, size}, at, behind);
  return size;
}

}  // namespace motley::fuzz
