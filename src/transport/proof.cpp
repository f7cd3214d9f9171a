#include "transport/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/check.h"
#include "wire/frame.h"

namespace motley::transport {
namespace {

const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

void add(wire::Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

/// Every part has a fixed length, so two different exchanges never have the same transcript.
wire::Bytes transcript(Role role, const Exchange& exchange, std::byte verdict) {
  wire::Bytes bytes;
  bytes.push_back(static_cast<std::byte>(role == Role::client ? 'C' : 'S'));
  add(bytes, exchange.server_nonce);
  add(bytes, exchange.client_nonce);
  bytes.push_back(static_cast<std::byte>(exchange.lane));
  add(bytes, exchange.session);
  add(bytes, exchange.job);
  bytes.push_back(verdict);
  return bytes;
}

}  // namespace

Proof prove(std::string_view token, Role role, const Exchange& exchange, std::byte verdict) {
  const wire::Bytes reported = transcript(role, exchange, verdict);
  Proof proof{};
  unsigned int length = 0;
  const auto* done =
      HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()), raw(reported.data()), reported.size(), raw(proof.data()), &length);
  check(done != nullptr && length == proof.size(), "OpenSSL computes HMAC-SHA256");
  return proof;
}

bool same(const Proof& a, const Proof& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

void fill_random(std::span<std::byte> out) {
  check(RAND_bytes(raw(out.data()), static_cast<int>(out.size())) == 1, "OpenSSL has random bytes");
}

}  // namespace motley::transport
