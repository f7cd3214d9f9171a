// For tests: a process that listens at a chief's address without knowing the token. It answers each client in a chosen way, and counts
// them.
#pragma once
#include <array>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <list>
#include <memory>
#include <string>

#include "transport/address.h"
#include "transport/anchor.h"
#include "transport/handshake.h"
#include "wire/encode.h"

namespace motley::transport {

enum class Imposture { ssh, http, half_a_word, hangs_up, other_version, wrong_token, other_job, welcome };

inline constexpr std::array impostures{Imposture::ssh,           Imposture::http,        Imposture::half_a_word, Imposture::hangs_up,
                                       Imposture::other_version, Imposture::wrong_token, Imposture::other_job,   Imposture::welcome};

/// Listens until it is destroyed. One io_context.
class Impostor {
 public:
  Imposture imposture = Imposture::ssh;
  std::size_t answered = 0;

  Impostor(asio::io_context& io, const Address& address) : address_(address), listener_(io) {
    const Stream::endpoint_type endpoint = endpoint_of(address);
    listener_.open(endpoint.protocol());
    listener_.set_option(asio::socket_base::reuse_address(true));
    listener_.bind(endpoint);
    listener_.listen();
    answer_next();
  }
  ~Impostor() {
    if (const auto* local = std::get_if<UnixAddress>(&address_)) std::filesystem::remove(local->path);
  }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;

 private:
  static Stream::endpoint_type endpoint_of(const Address& address) {
    if (const auto* local = std::get_if<UnixAddress>(&address)) return {asio::local::stream_protocol::endpoint(local->path)};
    return {asio::ip::tcp::endpoint(asio::ip::make_address("127.0.0.1"), std::get<TcpAddress>(address).port)};
  }

  void answer_next() {
    listener_.async_accept([this, here = anchor_.watch()](boost::system::error_code failed, Stream caller) {
      if (failed || here.gone()) return;
      callers_.push_back(std::move(caller));
      answer(callers_.back());
      ++answered;
      answer_next();
    });
  }

  void answer(Stream& caller) {
    boost::system::error_code ignored;
    const auto say = [&](const auto& what) { asio::write(caller, asio::buffer(what), ignored); };
    switch (imposture) {
      case Imposture::ssh: return say(std::string("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"));
      case Imposture::http: say(std::string("HTTP/1.1 400 Bad Request\r\n\r\n")); return close_quietly(caller);
      case Imposture::half_a_word: say(std::string("MT")); return close_quietly(caller);
      case Imposture::hangs_up: return close_quietly(caller);
      case Imposture::other_version: return say(challenge(handshake_version + 1));
      case Imposture::wrong_token: return refuse(caller, Verdict::wrong_token);
      case Imposture::other_job: return refuse(caller, Verdict::other_job);
      case Imposture::welcome: return refuse(caller, Verdict::welcome);
    }
  }

  static wire::Bytes challenge(std::uint16_t version) {
    wire::Bytes bytes;
    wire::Appender to{bytes};
    to.put(handshake_magic, 4);
    to.put(version, 2);
    bytes.resize(challenge_bytes);
    return bytes;
  }
  /// Our protocol without a valid proof. The verdict is sent before the client's answer arrives, since the client reads it only afterwards.
  static void refuse(Stream& caller, Verdict verdict) {
    wire::Bytes bytes = challenge(handshake_version);
    bytes.push_back(static_cast<std::byte>(verdict));
    bytes.resize(challenge_bytes + verdict_bytes);
    boost::system::error_code ignored;
    asio::write(caller, asio::buffer(bytes), ignored);
  }

  Address address_;
  asio::basic_socket_acceptor<asio::generic::stream_protocol> listener_;
  std::list<Stream> callers_;  // kept open: callers whose connection is not closed
  Anchor<Impostor> anchor_{*this};
};

}  // namespace motley::transport
