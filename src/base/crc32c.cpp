// The instruction has a latency of three cycles and can begin every cycle: so three runs of a block are done side by side, and the
// checksums of the first two are carried over the bytes that follow them (Gopal et al., Fast CRC Computation for iSCSI Polynomial Using
// CRC32 Instruction, Intel 2011). A checksum carried over n zero bytes is a linear map: four tables of 256 entries for each n.
#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace motley {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;  // reversed: the lowest bit is the highest power
using Table = std::array<std::uint32_t, 256>;

constexpr Table bytewise = [] {
  Table table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? polynomial : 0);
    table[i] = crc;
  }
  return table;
}();

constexpr std::uint32_t step(std::uint32_t crc, std::uint8_t byte) { return (crc >> 8U) ^ bytewise[(crc ^ byte) & 0xffU]; }

#if defined(__x86_64__)
/// A linear map of checksums: the image of any is the sum of those of its four bytes.
struct Carry {
  std::array<Table, 4> tables{};
  [[nodiscard]] constexpr std::uint32_t of(std::uint32_t crc) const {
    return tables[0][crc & 0xffU] ^ tables[1][(crc >> 8U) & 0xffU] ^ tables[2][(crc >> 16U) & 0xffU] ^ tables[3][crc >> 24U];
  }
};

/// Over `zeros` bytes, a power of two.
Carry carry_over(std::size_t zeros) {
  std::array<std::uint32_t, 32> image{};  // of each bit
  for (std::uint32_t bit = 0; bit < image.size(); ++bit) image[bit] = step(1U << bit, 0);
  const auto map = [&](std::uint32_t crc) {
    std::uint32_t sum = 0;
    for (std::uint32_t bit = 0; bit < image.size(); ++bit)
      if ((crc >> bit & 1U) != 0) sum ^= image[bit];
    return sum;
  };
  for (std::size_t n = 1; n < zeros; n *= 2) {
    std::array<std::uint32_t, 32> twice{};
    for (std::uint32_t bit = 0; bit < image.size(); ++bit) twice[bit] = map(image[bit]);
    image = twice;
  }
  Carry carry;
  for (std::uint32_t byte = 0; byte < 4; ++byte)
    for (std::uint32_t i = 0; i < 256; ++i) carry.tables[byte][i] = map(i << (8 * byte));
  return carry;
}

__attribute__((target("sse4.2"))) std::uint64_t add_word(std::uint64_t crc, const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return _mm_crc32_u64(crc, word);
}

/// As many blocks of three runs of `run` bytes as there are. `carry` is over one run.
template <std::size_t run>
__attribute__((target("sse4.2"))) std::uint32_t add_blocks(std::uint32_t crc, const std::byte*& from, std::size_t& left,
                                                           const Carry& carry) {
  for (; left >= 3 * run; from += 3 * run, left -= 3 * run) {
    std::uint64_t first = crc;
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < run; i += sizeof(std::uint64_t)) {
      first = add_word(first, from + i);
      second = add_word(second, from + run + i);
      third = add_word(third, from + 2 * run + i);
    }
    crc = carry.of(static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
    crc = carry.of(crc) ^ static_cast<std::uint32_t>(third);
  }
  return crc;
}

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t crc, std::span<const std::byte> bytes) {
  constexpr std::size_t long_run = 4096;  // three fit the first cache
  constexpr std::size_t short_run = 256;
  static const Carry over_long = carry_over(long_run);
  static const Carry over_short = carry_over(short_run);
  const std::byte* from = bytes.data();
  std::size_t left = bytes.size();
  crc = add_blocks<long_run>(crc, from, left, over_long);
  crc = add_blocks<short_run>(crc, from, left, over_short);
  for (; left >= sizeof(std::uint64_t); from += sizeof(std::uint64_t), left -= sizeof(std::uint64_t))
    crc = static_cast<std::uint32_t>(add_word(crc, from));
  for (; left > 0; ++from, --left) crc = _mm_crc32_u8(crc, std::to_integer<std::uint8_t>(*from));
  return crc;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (const std::byte b : bytes) crc = step(crc, std::to_integer<std::uint8_t>(b));
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~by_instruction(~before, bytes);
#endif
  return crc32c_by_table(bytes, before);
}

}  // namespace motley
