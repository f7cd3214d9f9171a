// The first messages of a stream, which authenticate both ends: fixed size, refused at the first wrong byte.
//
//   server -> client   challenge := magic:u32 version:u16 nonce:32
//   client -> server   answer    := magic:u32 version:u16 lane:u8 session:16 job:32 nonce:32 proof:32
//   server -> client   verdict   := code:u8 proof:32          proofs: proof.h          numbers little-endian
//
// A welcome always carries a proof; a refusal carries one only if the client has proven the token, because any process can listen on a port
// and
// refuse. The caller enforces deadlines by closing the stream; pending calls then end with an error.
#pragma once
#include <cstdint>

#include "base/result.h"
#include "transport/options.h"
#include "transport/proof.h"
#include "transport/stream.h"

namespace motley::transport {

inline constexpr std::uint32_t handshake_magic = 0x484C544D;  // "MTLH" when little-endian
inline constexpr std::uint16_t handshake_version = 6;
inline constexpr std::size_t challenge_bytes = 38, answer_bytes = 119, verdict_bytes = 33;

enum class Verdict : std::uint8_t { welcome, not_motley, other_version, wrong_token, other_job, wrong_lane };

/// The server's side, in two steps, so that the caller can check the claim before it welcomes. A refusal is sent to the client and
/// returned.
asio::awaitable<Result<Exchange>> receive_claim(Stream& stream, const Options& options);
asio::awaitable<Outcome> welcome(Stream& stream, const Exchange& claim, const Options& options);
asio::awaitable<void> refuse(Stream& stream, Verdict why, const Proof& proof = {});

/// The client's side. Succeeds when the server has welcomed us and proven that it knows the token. Errors, by Next: tell_user: a refusal
/// with that proof; drop_peer: a refusal without it, or another protocol; give_up: the stream ended.
asio::awaitable<Outcome> authenticate(Stream& stream, Lane lane, const Session& session, const Options& options);

}  // namespace motley::transport
