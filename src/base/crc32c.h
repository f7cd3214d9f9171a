// CRC-32C (Castagnoli), the checksum of iSCSI and ext4: by the fastest instructions that the processor has (VPCLMULQDQ with AVX-512, or
// SSE4.2), by a table where it has none. Found out at run time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

/// Of `bytes`; or of all bytes so far, `before` being the checksum of those before them. Any thread.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

struct Crc32cVariant {
  const char* name;
  std::uint32_t (*compute)(std::span<const std::byte> bytes, std::uint32_t before);
};
/// What this processor can run, fastest first: crc32c() is the first. The last is the table, which tests hold the others to.
[[nodiscard]] std::span<const Crc32cVariant> crc32c_variants();

}  // namespace motley
