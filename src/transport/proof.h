// Proves knowledge of the token: challenge and response at the opening of a stream, in both directions. Pure except for random bytes from
// OpenSSL.
// HMAC-SHA256 over the whole exchange binds the proof to this stream; the role in it prevents a peer from echoing our own proof. Without
// TLS a man in the middle can still read and alter later traffic: the token authenticates, it does not encrypt.
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

/// The values that both sides have exchanged when a proof is computed.
struct Exchange {
  Nonce server_nonce{};
  Nonce client_nonce{};
  Lane lane{};
  Session session{};
  JobHash job{};
};

/// `verdict`: the server's answer, so that a refusal can be proven like a welcome (0); 0 in a client's proof.
[[nodiscard]] Proof prove(std::string_view token, Role role, const Exchange& exchange, std::byte verdict = {});

/// Compares in constant time.
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
