// Random damage for tests of parsers: flipped, inserted, removed, doubled or truncated bytes from a seed; and the growth of the process's
// memory.
#pragma once
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/rng.h"

namespace motley {

inline constexpr std::uint64_t mutations = 2000;

/// Applies one to four mutations.
inline std::string mutated(std::string bytes, Rng& rng) {
  constexpr std::array<std::uint64_t, 8> extremes{0, 1, 0x7F, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF};
  const auto place = [&] { return bytes.empty() ? 0 : rng.below(bytes.size()); };
  for (std::uint64_t n = 1 + rng.below(4); n > 0; --n) {
    const std::size_t at = place(), length = std::min<std::size_t>(1 + rng.below(16), bytes.size() - at);
    switch (rng.below(8)) {
      case 0: bytes.resize(at); break;
      case 1: bytes.erase(at, length); break;
      case 2: bytes.insert(at, bytes.substr(place(), length)); break;
      case 3: bytes.insert(at, 1 + rng.below(8), static_cast<char>(rng.bits())); break;
      case 4: {
        const std::uint64_t extreme = extremes[rng.below(extremes.size())];
        std::memcpy(bytes.data() + at, &extreme, std::min(length, sizeof extreme));
        break;
      }
      default:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1U << rng.below(8)));
    }
  }
  return bytes;
}

/// Replaces digits, points, signs or letters: numbers that stay numbers pass more checks than random bytes.
inline std::string mutated_text(std::string text, Rng& rng) {
  constexpr std::array<const char*, 16> words{
      "0", "-1", "1e308", "-1e308", "1e999", "18446744073709551615", "9223372036854775807", "nan", "inf", "", "\"",
      "]", "[",  "}",     "0.5",    "\xff"};
  if (rng.below(3) == 0) return mutated(std::move(text), rng);
  for (std::uint64_t n = 1 + rng.below(3); n > 0; --n) {
    std::size_t from = text.empty() ? 0 : text.find_first_of("0123456789", rng.below(text.size()));
    if (from == std::string::npos) from = 0;
    const std::size_t to = std::min(text.find_first_not_of("0123456789.e-", from), text.size());
    text.replace(from, to - from, words[rng.below(words.size())]);
  }
  return text;
}

/// The peak memory of this process.
inline std::uint64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}
inline constexpr std::uint64_t most_growth = 256 << 20;  // a sanitizer keeps freed memory for a while

}  // namespace motley
