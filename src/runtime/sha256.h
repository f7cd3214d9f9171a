// SHA-256 of a text.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace motley::runtime {

[[nodiscard]] std::array<std::byte, 32> sha256(std::string_view text);
/// 64 hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view text);

}  // namespace motley::runtime
