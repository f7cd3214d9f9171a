// CRC-32C (Castagnoli), the checksum of iSCSI and ext4: by the processor's own instruction where it has one (SSE4.2), by a table elsewhere.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

/// Of `bytes`; or of all bytes so far, `before` being the checksum of those before them. Any thread.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The same by the table alone: what every processor can do, and what tests hold the other to.
[[nodiscard]] std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace motley
