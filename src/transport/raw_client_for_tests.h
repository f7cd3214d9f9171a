// For this module's tests: a client that sends single bytes to a listener and may break the protocol.
#pragma once
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "base/rng.h"
#include "transport/handshake.h"
#include "transport/pairs_for_tests.h"
#include "wire/encode.h"

namespace motley::transport {

inline Stream raw_stream(asio::io_context& io, const Address& address) {
  asio::ip::tcp::socket socket(io);
  socket.connect({asio::ip::make_address("127.0.0.1"), std::get<TcpAddress>(address).port});
  return Stream(std::move(socket));
}

inline void write_raw(Stream& stream, const wire::Bytes& bytes) { asio::write(stream, asio::buffer(bytes)); }

/// Waits until `n` bytes can be read, running the io_context meanwhile.
inline wire::Bytes read_raw(asio::io_context& io, Stream& stream, std::size_t n) {
  wire::Bytes bytes(n);
  EXPECT_TRUE(run_until(io, [&] { return stream.available() >= n; }));
  asio::read(stream, asio::buffer(bytes));
  return bytes;
}

inline wire::Bytes noise(std::size_t n, std::uint64_t seed) {
  Rng rng(seed, "noise");
  wire::Bytes bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng.bits());
  return bytes;
}

inline Outcome authenticate_now(asio::io_context& io, Stream& stream, Lane lane, const Session& session, const Options& options) {
  std::optional<Outcome> answer;
  asio::co_spawn(
      io, [&]() -> asio::awaitable<void> { answer = co_await authenticate(stream, lane, session, options); }, rethrow);
  EXPECT_TRUE(run_until(io, [&] { return answer.has_value(); }));
  return *answer;
}

/// Negotiates the stream as the bulk lane (bulk_negotiation.h).
inline void agree_on_the_stream(asio::io_context& io, Stream& bulk) {
  const wire::Bytes nothing_offered(2);
  write_raw(bulk, nothing_offered);
  EXPECT_EQ(read_raw(io, bulk, nothing_offered.size()), nothing_offered);
}

/// A listener and one authenticated client whose bytes the test writes.
struct RawPeer {
  RawPeer(asio::io_context& io, Options options) : control(io), bulk(io) {
    options.bulk = Bulk::tcp;
    auto acceptor = listen(io, TcpAddress{"127.0.0.1", 0}, options, incoming);
    EXPECT_TRUE(acceptor.ok()) << acceptor.error().message;
    const auto session = random_bytes<sizeof(Session)>();
    control = raw_stream(io, (*acceptor)->address());
    EXPECT_TRUE(authenticate_now(io, control, Lane::control, session, options).ok());
    bulk = raw_stream(io, (*acceptor)->address());
    EXPECT_TRUE(authenticate_now(io, bulk, Lane::bulk, session, options).ok());
    agree_on_the_stream(io, bulk);
    EXPECT_TRUE(run_until(io, [&] { return !incoming.connections.empty(); }));
    incoming.connections[0]->start(callbacks);
  }
  Stream control;
  Stream bulk;
  RecordingAcceptor incoming;
  RecordingCallbacks callbacks;  // of the listener's side
};

}  // namespace motley::transport
