// The opening of one stream, before anything else is read from it: fixed, tiny, and refused at the first wrong byte.
//
//   server -> client   challenge := magic:u32 version:u16 nonce:32
//   client -> server   answer    := magic:u32 version:u16 lane:u8 session:16 job:32 nonce:32 proof:32
//   server -> client   verdict   := code:u8 proof:32          proofs: proof.h          numbers little-endian
//
// A welcome is always proven, a refusal only to a client that has proven itself before: anybody can sit on a port and refuse.
// Deadlines are the caller's: it closes the stream, and what waits here ends with an error.
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

/// The server's side, in two steps, so that it can look at the claim before it says welcome. A refusal is told to the client and returned.
asio::awaitable<Result<Exchange>> hear_claim(Stream& stream, const Options& options);
asio::awaitable<Outcome> welcome(Stream& stream, const Exchange& claim, const Options& options);
asio::awaitable<void> turn_away(Stream& stream, Verdict why, const Proof& proof = {});

/// The client's side. Done when the server has welcomed us and proven that it knows the token too. Errors, by Next: tell_user, a refusal
/// with that proof; drop_peer, a refusal without it, or another protocol; give_up, the stream broke off.
asio::awaitable<Outcome> introduce(Stream& stream, Lane lane, const Session& session, const Options& options);

}  // namespace motley::transport
