// The stream of bytes on which a lane runs: TCP or a unix socket. The lanes use only its asynchronous read_some, write_some, wait and
// close, so a TLS stream can replace it. Also this module's shorthands for Asio.
// Each co_await stands in a statement of its own: g++ 12 miscompiles it inside a loop's condition or behind &&.
#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdint>
#include <exception>
#include <string>

#include "base/result.h"
#include "transport/options.h"

namespace motley::transport {

namespace asio = boost::asio;
using Stream = asio::generic::stream_protocol::socket;

enum class Lane : std::uint8_t { control = 0, bulk = 1 };

/// Completion token that returns errors as values.
inline constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

/// For co_spawn: an exception in a coroutine leaves through io_context::run().
inline void rethrow(const std::exception_ptr& bug) {
  if (bug) std::rethrow_exception(bug);
}

/// Control: TCP_NODELAY, so that messages are sent at once. Bulk: about one slice unsent in the kernel (TCP_NOTSENT_LOWAT), so that the
/// next slice is chosen late; a unix socket gets a buffer of that size. TCP's other buffers stay with the kernel's auto-tuning: a fixed
/// size would be capped at net.core.rmem_max, 208 KiB on an untuned machine.
void tune(Stream& stream, Lane lane, const Options& options);

/// "127.0.0.1:40123"; "unix" for the unnamed end of a unix socket.
[[nodiscard]] std::string to_text(const Stream::endpoint_type& endpoint);
[[nodiscard]] std::string peer_of(const Stream& stream);

/// Closes the stream and ignores errors.
void close_quietly(Stream& stream);

}  // namespace motley::transport
