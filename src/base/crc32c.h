// CRC-32C (Castagnoli), the checksum of iSCSI and ext4: computed by the fastest instructions of the processor (VPCLMULQDQ with AVX-512, or
// SSE4.2), or else by a table. Chosen at run time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

/// The checksum of `bytes`, or, when `before` is the checksum of earlier bytes, of both together. Any thread.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

struct Crc32cVariant {
  const char* name;
  std::uint32_t (*compute)(std::span<const std::byte> bytes, std::uint32_t before);
};
/// The variants that this processor can run, fastest first: crc32c() is the first. The last is the table, against which tests compare the
/// others.
[[nodiscard]] std::span<const Crc32cVariant> crc32c_variants();

}  // namespace motley
