// With VPCLMULQDQ and AVX-512, four registers hold 256 bytes and are folded over the next 256 (Gopal et al., Fast CRC Computation for
// Generic Polynomials Using PCLMULQDQ Instruction, Intel 2009).
// The instruction crc32 has a latency of three cycles and can start every cycle: three runs of a block are computed in parallel, and the
// checksums of the first two are extended over the bytes after them (Gopal et al., Fast CRC Computation for iSCSI Polynomial Using CRC32
// Instruction, Intel 2011). Extending a checksum over n zero bytes is a linear map: four tables of 256 entries for each n.
#include "base/crc32c.h"

#include <array>
#include <cstring>
#include <vector>

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
/// A linear map of checksums: the image of a checksum is the sum of the images of its four bytes.
struct Carry {
  std::array<Table, 4> tables{};
  [[nodiscard]] constexpr std::uint32_t of(std::uint32_t crc) const {
    return tables[0][crc & 0xffU] ^ tables[1][(crc >> 8U) & 0xffU] ^ tables[2][(crc >> 16U) & 0xffU] ^ tables[3][crc >> 24U];
  }
};

/// The map for `zeros` zero bytes, a power of two.
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

/// Processes as many blocks of three runs of `run` bytes as `bytes` has. `carry` is the map for one run.
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
  constexpr std::size_t long_run = 4096;  // three runs fit the first-level cache
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

/// x^power modulo the polynomial, reversed and shifted by one bit, because the product of two reversed numbers is one bit too low.
constexpr std::uint64_t fold_factor(std::size_t power) {
  std::uint32_t remainder = 1U << 31U;  // x^0
  for (std::size_t i = 0; i < power; ++i) remainder = (remainder >> 1U) ^ ((remainder & 1U) != 0 ? polynomial : 0);
  return std::uint64_t{remainder} << 1U;
}

__attribute__((target("avx512f"))) __m512i load(const std::byte* from) { return _mm512_loadu_si512(from); }

/// `sum` represents the bytes before; `next` lies as many bytes after it as `factors` are made for.
__attribute__((target("avx512f,vpclmulqdq"))) __m512i fold(__m512i sum, __m512i factors, __m512i next) {
  constexpr int exclusive_or_of_three = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, factors, 0x00), _mm512_clmulepi64_epi128(sum, factors, 0x11), next,
                                   exclusive_or_of_three);
}

/// Reduces the registers to the checksum of all folded bytes.
__attribute__((target("avx512f,vpclmulqdq,sse4.2"))) std::uint32_t by_folding(std::uint32_t crc, std::span<const std::byte> bytes) {
  constexpr std::size_t vector = 64, block = 4 * vector;
  constexpr auto low = static_cast<long long>(fold_factor(8 * block + 32)), high = static_cast<long long>(fold_factor(8 * block - 32));
  if (bytes.size() < block) return by_instruction(crc, bytes);
  const __m512i factors = _mm512_set_epi64(high, low, high, low, high, low, high, low);
  const std::byte* from = bytes.data();
  __m512i a = _mm512_xor_si512(load(from), _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  __m512i b = load(from + vector), c = load(from + 2 * vector), d = load(from + 3 * vector);
  std::size_t left = bytes.size() - block;
  for (from += block; left >= block; from += block, left -= block) {
    a = fold(a, factors, load(from));
    b = fold(b, factors, load(from + vector));
    c = fold(c, factors, load(from + 2 * vector));
    d = fold(d, factors, load(from + 3 * vector));
  }
  std::array<std::byte, block> rest{};
  _mm512_storeu_si512(rest.data(), a);
  _mm512_storeu_si512(rest.data() + vector, b);
  _mm512_storeu_si512(rest.data() + 2 * vector, c);
  _mm512_storeu_si512(rest.data() + 3 * vector, d);
  return by_instruction(by_instruction(0, rest), {from, left});
}
#endif

std::uint32_t by_table(std::uint32_t crc, std::span<const std::byte> bytes) {
  for (const std::byte b : bytes) crc = step(crc, std::to_integer<std::uint8_t>(b));
  return crc;
}

template <std::uint32_t (*update)(std::uint32_t crc, std::span<const std::byte> bytes)>
std::uint32_t inverted(std::span<const std::byte> bytes, std::uint32_t before) {
  return ~update(~before, bytes);
}

std::vector<Crc32cVariant> find_variants() {
  std::vector<Crc32cVariant> found;
#if defined(__x86_64__)
  const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  const bool folds = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
  if (has_instruction && folds) found.push_back({"vpclmulqdq", inverted<by_folding>});
  if (has_instruction) found.push_back({"sse4.2", inverted<by_instruction>});
#endif
  found.push_back({"table", inverted<by_table>});
  return found;
}

}  // namespace

std::span<const Crc32cVariant> crc32c_variants() {
  static const std::vector<Crc32cVariant> variants = find_variants();
  return variants;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  static const auto compute = crc32c_variants().front().compute;
  return compute(bytes, before);
}

}  // namespace motley
