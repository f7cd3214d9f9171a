#include "transport/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstring>

#include "transport/address.h"

namespace motley::transport {
namespace {

/// Sets a socket option; a failure is ignored, since the stream works without it.
void set_option_if_known(Stream& stream, int level, int name, int value) {
  ::setsockopt(stream.native_handle(), level, name, &value, sizeof(value));
}

int family_of(const Stream& stream) {
  boost::system::error_code failed;
  const auto endpoint = stream.local_endpoint(failed);
  return failed ? AF_UNSPEC : endpoint.protocol().family();
}

}  // namespace

void tune(Stream& stream, Lane lane, const Options& options) {
  const int slice = static_cast<int>(options.slice_bytes);
  if (family_of(stream) == AF_UNIX) {
    if (lane == Lane::bulk) set_option_if_known(stream, SOL_SOCKET, SO_SNDBUF, slice);
    return;
  }
  set_option_if_known(stream, IPPROTO_TCP, TCP_NODELAY, 1);
  if (lane == Lane::bulk) set_option_if_known(stream, IPPROTO_TCP, TCP_NOTSENT_LOWAT, slice);
}

std::string to_text(const Stream::endpoint_type& endpoint) {
  if (endpoint.protocol().family() == AF_UNIX) {
    asio::local::stream_protocol::endpoint local;
    std::memcpy(local.data(), endpoint.data(), endpoint.size());
    local.resize(endpoint.size());
    return local.path().empty() ? "unix" : to_text(Address{UnixAddress{local.path()}});
  }
  asio::ip::tcp::endpoint tcp;
  std::memcpy(tcp.data(), endpoint.data(), std::min(endpoint.size(), tcp.capacity()));
  return to_text(Address{TcpAddress{tcp.address().to_string(), tcp.port()}});
}

std::string peer_of(const Stream& stream) {
  boost::system::error_code failed;
  const auto endpoint = stream.remote_endpoint(failed);
  return failed ? "a disconnected peer" : to_text(endpoint);
}

void close_quietly(Stream& stream) {
  boost::system::error_code ignored;
  stream.close(ignored);  // NOLINT(bugprone-unused-return-value): the same error
}

}  // namespace motley::transport
