#include "transport/handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <span>
#include <string>

#include "wire/encode.h"

namespace motley::transport {
namespace {

/// Reads fixed-size fields; the message must be complete.
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

constexpr std::size_t magic_bytes = 4, opening_bytes = 6;

void put_opening(wire::Bytes& out) {
  wire::Appender to{out};
  to.put(handshake_magic, magic_bytes);
  to.put(handshake_version, opening_bytes - magic_bytes);
}

void put(wire::Bytes& out, std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

/// Returns welcome as long as `bytes` may be a prefix of our own opening.
Verdict check_opening(std::span<const std::byte> bytes) {
  wire::Bytes ours;
  put_opening(ours);
  const std::size_t here = std::min(bytes.size(), ours.size());
  const auto differs = static_cast<std::size_t>(
      std::mismatch(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(here), ours.begin()).first - bytes.begin());
  if (differs < std::min(here, magic_bytes)) return Verdict::not_motley;
  return differs < here ? Verdict::other_version : Verdict::welcome;
}

/// The first line that an unauthenticated process sent, as printable text.
std::string quoted(std::span<const std::byte> bytes) {
  constexpr std::size_t longest = 60;
  std::string text = "\"";
  for (const std::byte b : bytes.first(std::min(bytes.size(), longest))) {
    const char c = static_cast<char>(b);
    if (c == '\r' || c == '\n') break;
    text.push_back(c >= ' ' && c <= '~' ? c : '?');
  }
  return text + "\"";
}

struct Answer {
  std::uint64_t lane{};
  Exchange exchange;  // without the server's nonce
  Proof proof{};
};

Answer read_answer(std::span<const std::byte> bytes) {
  Fields in(bytes);
  Answer answer;
  in.number(opening_bytes);
  answer.lane = in.number(1);
  in.take(answer.exchange.session);
  in.take(answer.exchange.job);
  in.take(answer.exchange.client_nonce);
  in.take(answer.proof);
  answer.exchange.lane = static_cast<Lane>(answer.lane);
  return answer;
}

/// The token is checked first, so an unauthenticated process does not learn whether it named the right job.
Verdict verdict_on(const Answer& answer, const Options& options) {
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
  return "refused for a reason that only a newer version knows";
}

/// `reported`: the bytes that came instead of our opening, when that is the reason.
Error refusal(Verdict verdict, std::span<const std::byte> reported = {}) {
  std::string why(sentence(verdict));
  if (verdict == Verdict::not_motley) why += fmt::format(", it begins with {}: the address may be wrong", quoted(reported));
  return peer_broken(std::move(why));
}

Error broken_off(const boost::system::error_code& failed) {
  return world_failed(fmt::format("the handshake broke off: {}", failed.message()));
}

asio::awaitable<Outcome> write(Stream& stream, wire::Bytes bytes) {
  const auto [failed, written] = co_await asio::async_write(stream, asio::buffer(bytes), as_values);
  if (failed) co_return broken_off(failed);
  co_return Done{};
}

/// Reads a message that begins with our opening. Returns fewer bytes than `n` when another opening came; then the rest is not read.
template <std::size_t n>
asio::awaitable<Result<std::size_t>> read_opened(Stream& stream, std::array<std::byte, n>& bytes) {
  std::size_t here = 0;
  while (here < n) {
    const auto [failed, count] = co_await stream.async_read_some(asio::buffer(bytes) + here, as_values);
    here += count;
    if (check_opening(std::span(bytes).first(here)) != Verdict::welcome) co_return here;
    if (failed) co_return broken_off(failed);
  }
  co_return here;
}

wire::Bytes verdict_of(Verdict verdict, const Proof& proof) {
  wire::Bytes bytes{static_cast<std::byte>(verdict)};
  put(bytes, proof);
  return bytes;
}

}  // namespace

// server ---------------------------------------------------------------------------------------------------------------------------

asio::awaitable<Result<Exchange>> receive_claim(Stream& stream, const Options& options) {
  const auto nonce = random_bytes<sizeof(Nonce)>();
  wire::Bytes challenge;
  put_opening(challenge);
  put(challenge, nonce);
  if (Outcome sent = co_await write(stream, std::move(challenge)); !sent.ok()) co_return sent.error();

  std::array<std::byte, answer_bytes> bytes{};
  const Result<std::size_t> got = co_await read_opened(stream, bytes);
  if (!got.ok()) co_return got.error();
  const auto reported = std::span(bytes).first(*got);
  if (const Verdict opening = check_opening(reported); opening != Verdict::welcome) {
    co_await refuse(stream, opening);
    co_return refusal(opening, reported);
  }
  Answer answer = read_answer(bytes);
  answer.exchange.server_nonce = nonce;
  const Verdict verdict = verdict_on(answer, options);
  if (verdict == Verdict::welcome) co_return answer.exchange;
  const bool knows_the_token = verdict == Verdict::other_job;
  const Proof proof = knows_the_token ? prove(options.token, Role::server, answer.exchange, static_cast<std::byte>(verdict)) : Proof{};
  co_await refuse(stream, verdict, proof);
  co_return refusal(verdict);
}

asio::awaitable<Outcome> welcome(Stream& stream, const Exchange& claim, const Options& options) {
  co_return co_await write(stream, verdict_of(Verdict::welcome, prove(options.token, Role::server, claim)));
}

asio::awaitable<void> refuse(Stream& stream, Verdict why, const Proof& proof) {
  const Outcome recorded = co_await write(stream, verdict_of(why, proof));
  static_cast<void>(recorded);  // the refusal stands even if the client has closed the stream
}

// client ---------------------------------------------------------------------------------------------------------------------------

asio::awaitable<Outcome> authenticate(Stream& stream, Lane lane, const Session& session, const Options& options) {
  std::array<std::byte, challenge_bytes> challenge{};
  const Result<std::size_t> got = co_await read_opened(stream, challenge);
  if (!got.ok()) co_return got.error();
  const auto reported = std::span(challenge).first(*got);
  if (const Verdict opening = check_opening(reported); opening != Verdict::welcome) co_return refusal(opening, reported);

  Fields in(challenge);
  in.number(opening_bytes);
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
  const auto [failed, count] = co_await asio::async_read(stream, asio::buffer(bytes), as_values);
  if (failed) co_return broken_off(failed);
  Fields verdict(bytes);
  const auto code = static_cast<Verdict>(verdict.number(1));
  Proof proof{};
  verdict.take(proof);
  const bool proven = same(proof, prove(options.token, Role::server, exchange, bytes[0]));
  if (code == Verdict::welcome) co_return proven ? Outcome(Done{}) : Outcome(refusal(Verdict::wrong_token));
  const std::string why(sentence(code));
  if (code == Verdict::wrong_lane) co_return world_failed(why);  // our other lane was dropped meanwhile: another attempt may succeed
  co_return proven ? bad_input(why) : peer_broken(why);
}

}  // namespace motley::transport
