#include "transport/descriptor_passing.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>

namespace motley::transport {
namespace {

using ErrorCode = boost::system::error_code;

/// A msghdr with space for exactly one descriptor.
struct Envelope {
  explicit Envelope(std::span<std::byte> payload) : bytes{payload.data(), payload.size()} {
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_LEN(sizeof(int));
  }
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;

  iovec bytes;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
};

bool must_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }
ErrorCode last_error() { return {errno, boost::system::system_category()}; }

ssize_t send_once(int socket, std::byte byte, int file) {
  Envelope envelope({&byte, 1});
  cmsghdr* head = CMSG_FIRSTHDR(&envelope.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &file, sizeof(file));
  return ::sendmsg(socket, &envelope.message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t receive_once(int socket, std::span<std::byte> into, Descriptor& file) {
  Envelope envelope(into);
  const ssize_t got = ::recvmsg(socket, &envelope.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const cmsghdr* head = got < 0 ? nullptr : CMSG_FIRSTHDR(&envelope.message);
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int))) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(head), sizeof(number));
    file = Descriptor(number);
  }
  return got;
}

asio::awaitable<ErrorCode> send_with(Stream& stream, std::byte byte, const Descriptor& file) {
  for (;;) {
    if (send_once(stream.native_handle(), byte, file.number()) == 1) co_return ErrorCode{};
    if (!must_wait()) co_return last_error();
    const auto [failed] = co_await stream.async_wait(Stream::wait_write, as_values);
    if (failed) co_return failed;
  }
}

}  // namespace

Result<pid_t> process_of_our_user(Stream& stream) {
  ErrorCode failed;
  const auto endpoint = stream.local_endpoint(failed);
  if (failed || endpoint.protocol().family() != AF_UNIX)
    return world_failed("memory is shared over unix sockets only, and this is not one (listen on unix:PATH)");
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(stream.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    return world_failed(fmt::format("the kernel does not say whose process is at the other end: {}", std::strerror(errno)));
  if (peer.uid != ::geteuid()) return world_failed(fmt::format("the other side is a process of another user, user {}", peer.uid));
  return peer.pid;
}

asio::awaitable<ErrorCode> write_with_files(Stream& stream, std::span<const std::byte> bytes, std::span<const AttachedFile> files) {
  std::size_t written = 0;
  for (const AttachedFile& attached : files) {
    const auto before = asio::buffer(bytes.data() + written, attached.at - written);
    const auto [failed, count] = co_await asio::async_write(stream, before, as_values);
    if (failed) co_return failed;
    const ErrorCode refused = co_await send_with(stream, bytes[attached.at], *attached.file);
    if (refused) co_return refused;
    written = attached.at + 1;
  }
  const auto rest = asio::buffer(bytes.data() + written, bytes.size() - written);
  const auto [failed, count] = co_await asio::async_write(stream, rest, as_values);
  co_return failed;
}

asio::awaitable<ReadWithFile> read_some_with_file(Stream& stream, std::span<std::byte> into) {
  for (;;) {
    const auto [failed] = co_await stream.async_wait(Stream::wait_read, as_values);
    ReadWithFile read{.failed = failed, .file = {}};
    if (failed) co_return read;
    const ssize_t got = receive_once(stream.native_handle(), into, read.file);
    if (got < 0 && must_wait()) continue;
    read.bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
    if (got <= 0) read.failed = got < 0 ? last_error() : ErrorCode(asio::error::eof);
    co_return read;
  }
}

}  // namespace motley::transport
