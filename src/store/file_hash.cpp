#include "store/file_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/check.h"

namespace motley::store {

struct FileHash::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() { check(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1, "OpenSSL offers SHA-256"); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

FileHash::FileHash() : state_(std::make_unique<State>()) {}
FileHash::~FileHash() = default;

void FileHash::add(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, "hashing bytes succeeds");
}

std::string FileHash::digits() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(state_->context, hash.data(), &size) == 1, "finishing a hash succeeds");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", hash[i]);
  return text;
}

}  // namespace motley::store
