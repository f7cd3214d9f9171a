#include "runtime/sha256.h"

#include <fmt/format.h>
#include <openssl/sha.h>

namespace motley::runtime {

std::array<std::byte, 32> sha256(std::string_view text) {
  std::array<std::byte, 32> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string sha256_hex(std::string_view text) {
  std::string hex;
  for (const std::byte b : sha256(text)) hex += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return hex;
}

}  // namespace motley::runtime
