#include "trace/sinks.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/check.h"
#include "trace/record.h"

namespace motley::trace {
namespace {

constexpr std::size_t block_bytes = record_bytes * 1024;

}  // namespace

struct Writer::Digest {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  Digest() { check(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1, "OpenSSL offers SHA-256"); }
  ~Digest() { EVP_MD_CTX_free(context); }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
};

Writer::Writer(ByteSink bytes) : bytes_(std::move(bytes)), digest_(std::make_unique<Digest>()) {
  block_.reserve(file_header.size() + block_bytes);
  const auto header = std::as_bytes(std::span(file_header));
  block_.assign(header.begin(), header.end());
}
Writer::~Writer() = default;

void Writer::on_event(const Event& event) {
  const std::size_t end = block_.size();
  block_.resize(end + record_bytes);
  write_record(event, std::span<std::byte, record_bytes>(block_.data() + end, record_bytes));
  if (block_.size() >= block_bytes) flush();
}

void Writer::flush() {
  check(EVP_DigestUpdate(digest_->context, block_.data(), block_.size()) == 1, "hashing a trace block succeeds");
  if (bytes_) bytes_(block_);
  block_.clear();
}

std::string Writer::finish() {
  flush();
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(digest_->context, hash.data(), &size) == 1, "finishing the trace's hash succeeds");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", hash[i]);
  return text;
}

}  // namespace motley::trace
