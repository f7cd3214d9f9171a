#include "transport/handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "wire/encode.h"

namespace motley::transport {
namespace {

/// For a message whose size is fixed and there.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : left_(bytes) {}
  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::to_integer<std::uint64_t>(left_[i]) << (8 * i);
    left_ = left_.subspan(width);
    return value;
  }
  template <std::size_t n>
  void take(std::array<std::byte, n>& out) {
    std::copy_n(left_.begin(), n, out.begin());
    left_ = left_.subspan(n);
  }

 private:
  std::span<const std::byte> left_;
};

void put_opening(wire::Bytes& out) {
  wire::Appender to{out};
  to.put(handshake_magic, 4);
  to.put(handshake_version, 2);
}

void put(wire::Bytes& out, std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

/// Welcome when the opening is that of our own version.
Verdict read_opening(Fields& in) {
  if (in.number(4) != handshake_magic) return Verdict::not_motley;
  return in.number(2) == handshake_version ? Verdict::welcome : Verdict::other_version;
}

struct Answer {
  Verdict opening{};
  std::uint64_t lane{};
  Exchange exchange;  // without the server's nonce
  Proof proof{};
};

Answer read_answer(std::span<const std::byte> bytes) {
  Fields in(bytes);
  Answer answer;
  answer.opening = read_opening(in);
  answer.lane = in.number(1);
  in.take(answer.exchange.session);
  in.take(answer.exchange.job);
  in.take(answer.exchange.client_nonce);
  in.take(answer.proof);
  answer.exchange.lane = static_cast<Lane>(answer.lane);
  return answer;
}

/// What a stranger learns comes before the token, the rest behind it.
Verdict judge(const Answer& answer, const Options& options) {
  if (answer.opening != Verdict::welcome) return answer.opening;
  if (answer.lane > static_cast<std::uint64_t>(Lane::bulk)) return Verdict::wrong_lane;
  if (!same(answer.proof, prove(options.token, Role::client, answer.exchange))) return Verdict::wrong_token;
  return answer.exchange.job == any_job || answer.exchange.job == options.job ? Verdict::welcome : Verdict::other_job;
}

std::string_view sentence(Verdict verdict) {
  switch (verdict) {
    case Verdict::welcome: return "welcome";
    case Verdict::not_motley: return "the other side does not speak Motley";
    case Verdict::other_version: return "the other side speaks another version: run the same Motley everywhere";
    case Verdict::wrong_token: return "wrong token: give both sides the same one";
    case Verdict::other_job: return "the other side works on another job: give both sides the same job file";
    case Verdict::wrong_lane: return "the lanes of a connection come in order, control then bulk, each once";
  }
  return "refused for a reason of a newer version";
}

Error refusal(Verdict verdict) { return peer_broken(std::string(sentence(verdict))); }
/// To who wanted in: trying again would not help, only other arguments do.
Error our_fault(Verdict verdict) { return bad_input(std::string(sentence(verdict))); }

Error broken_off(const boost::system::error_code& failed) {
  return peer_broken(fmt::format("the handshake broke off: {}", failed.message()));
}

asio::awaitable<Outcome> write(Stream& stream, wire::Bytes bytes) {
  const auto [failed, written] = co_await asio::async_write(stream, asio::buffer(bytes), as_values);
  if (failed) co_return broken_off(failed);
  co_return Done{};
}

template <std::size_t n>
asio::awaitable<Outcome> read(Stream& stream, std::array<std::byte, n>& bytes) {
  const auto [failed, count] = co_await asio::async_read(stream, asio::buffer(bytes), as_values);
  if (failed) co_return broken_off(failed);
  co_return Done{};
}

wire::Bytes verdict_of(Verdict verdict, const Proof& proof) {
  wire::Bytes bytes{static_cast<std::byte>(verdict)};
  put(bytes, proof);
  return bytes;
}

}  // namespace

// server ---------------------------------------------------------------------------------------------------------------------------

asio::awaitable<Result<Exchange>> hear_claim(Stream& stream, const Options& options) {
  const auto nonce = random_bytes<sizeof(Nonce)>();
  wire::Bytes challenge;
  put_opening(challenge);
  put(challenge, nonce);
  if (Outcome sent = co_await write(stream, std::move(challenge)); !sent.ok()) co_return sent.error();

  std::array<std::byte, answer_bytes> bytes{};
  if (Outcome got = co_await read(stream, bytes); !got.ok()) co_return got.error();
  Answer answer = read_answer(bytes);
  answer.exchange.server_nonce = nonce;
  const Verdict verdict = judge(answer, options);
  if (verdict == Verdict::welcome) co_return answer.exchange;
  co_await turn_away(stream, verdict);
  co_return refusal(verdict);
}

asio::awaitable<Outcome> welcome(Stream& stream, const Exchange& claim, const Options& options) {
  co_return co_await write(stream, verdict_of(Verdict::welcome, prove(options.token, Role::server, claim)));
}

asio::awaitable<void> turn_away(Stream& stream, Verdict why) {
  const Outcome told = co_await write(stream, verdict_of(why, {}));
  static_cast<void>(told);  // who does not listen is turned away all the same
}

// client ---------------------------------------------------------------------------------------------------------------------------

asio::awaitable<Outcome> introduce(Stream& stream, Lane lane, const Session& session, const Options& options) {
  std::array<std::byte, challenge_bytes> challenge{};
  if (Outcome got = co_await read(stream, challenge); !got.ok()) co_return got.error();
  Fields in(challenge);
  if (const Verdict opening = read_opening(in); opening != Verdict::welcome) co_return our_fault(opening);

  Exchange exchange{.client_nonce = random_bytes<sizeof(Nonce)>(), .lane = lane, .session = session, .job = options.job};
  in.take(exchange.server_nonce);
  wire::Bytes answer;
  put_opening(answer);
  answer.push_back(static_cast<std::byte>(lane));
  put(answer, session);
  put(answer, options.job);
  put(answer, exchange.client_nonce);
  put(answer, prove(options.token, Role::client, exchange));
  if (Outcome sent = co_await write(stream, std::move(answer)); !sent.ok()) co_return sent.error();

  std::array<std::byte, verdict_bytes> bytes{};
  if (Outcome got = co_await read(stream, bytes); !got.ok()) co_return got.error();
  Fields verdict(bytes);
  const auto code = static_cast<Verdict>(verdict.number(1));
  if (code == Verdict::wrong_lane) co_return refusal(code);  // a crowd at the door pushed our other lane out: trying again helps
  if (code != Verdict::welcome) co_return our_fault(code);
  Proof proof{};
  verdict.take(proof);
  if (!same(proof, prove(options.token, Role::server, exchange))) co_return our_fault(Verdict::wrong_token);
  co_return Done{};
}

}  // namespace motley::transport
