// Who knows the token: challenge and response for the opening of a stream, both ways. Pure but for random(), which asks OpenSSL.
// HMAC-SHA256 over all that was said binds the answer to this stream; the role in it keeps a peer from echoing our own proof. Without TLS
// a man in the middle can still read and alter what follows: the token keeps strangers out, not eavesdroppers.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "transport/options.h"
#include "transport/stream.h"

namespace motley::transport {

using Nonce = std::array<std::byte, 32>;
using Session = std::array<std::byte, 16>;  // pairs the two lanes of a connection; chosen by the client
using Proof = std::array<std::byte, 32>;

enum class Role { client, server };

/// What both sides have said when a proof is made.
struct Exchange {
  Nonce server_nonce{};
  Nonce client_nonce{};
  Lane lane{};
  Session session{};
  JobHash job{};
};

/// `verdict`: what the server says with its proof, so that a refusal can be proven like a welcome, which is 0; 0 in a client's.
[[nodiscard]] Proof prove(std::string_view token, Role role, const Exchange& exchange, std::byte verdict = {});

/// In a time that does not depend on where they differ.
[[nodiscard]] bool same(const Proof& a, const Proof& b);

/// Unpredictable bytes.
void fill_random(std::span<std::byte> out);
template <std::size_t n>
std::array<std::byte, n> random_bytes() {
  std::array<std::byte, n> bytes{};
  fill_random(bytes);
  return bytes;
}

}  // namespace motley::transport
