// CRC-32C: known values, and the fast variants compared with the table.
#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/rng.h"

namespace motley {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Crc32c, Has_the_known_values) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  const std::vector<std::byte> zeros(32), ones(32, std::byte{0xff});  // RFC 3720, B.4
  EXPECT_EQ(crc32c(zeros), 0x8a9136aaU);
  EXPECT_EQ(crc32c(ones), 0x62a8ab43U);
}

TEST(Crc32c, Every_variant_agrees_with_the_table) {
  Rng rng(1, "crc");
  std::vector<std::byte> bytes(40'000);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng.below(256));
  const auto table = crc32c_variants().back().compute;
  for (const std::size_t length :
       {0U, 1U, 7U, 8U, 9U, 255U, 256U, 257U, 511U, 512U, 767U, 768U, 769U, 4095U, 12287U, 12288U, 12289U, 39'990U})
    for (std::size_t first = 0; first < 9; ++first) {
      const auto some = std::span<const std::byte>(bytes).subspan(first, length);
      const std::uint32_t before = static_cast<std::uint32_t>(rng.below(1U << 31U));
      const std::uint32_t expected = table(some, before);
      for (const Crc32cVariant& variant : crc32c_variants())
        EXPECT_EQ(variant.compute(some, before), expected) << variant.name << ", " << length << " bytes at " << first;
    }
}

TEST(Crc32c, Continues_from_a_checksum) {
  Rng rng(2, "crc");
  std::vector<std::byte> bytes(30'000);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng.below(256));
  const std::span<const std::byte> all(bytes);
  for (const std::size_t cut : {0U, 1U, 100U, 12'300U, 30'000U}) EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
}

TEST(Crc32c, Detects_every_flipped_bit) {
  std::vector<std::byte> bytes(1000, std::byte{0x5a});
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += 7) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_NE(crc32c(bytes), whole) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  }
}

}  // namespace
}  // namespace motley
