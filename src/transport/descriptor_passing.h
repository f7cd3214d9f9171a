// Bytes over a unix socket with file descriptors beside them (SCM_RIGHTS), and whose process is at its other end (SO_PEERCRED). A
// descriptor goes with one byte: it is there as soon as this byte is read. Whoever reads the byte in another way drops the descriptor.
#pragma once
#include <sys/types.h>

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"
#include "transport/descriptor.h"
#include "transport/stream.h"

namespace motley::transport {

/// The process at the other end, when it is one of our own user and the stream is a unix socket; else why memory is not shared with it.
/// The kernel says so, as it was when the two were connected.
Result<pid_t> process_of_our_user(Stream& stream);

struct AttachedFile {
  std::size_t at{};  // the byte that it goes with
  std::shared_ptr<const Descriptor> file;
};

/// All of it. `files` in the order of their places; both must stay until it is done.
asio::awaitable<boost::system::error_code> write_with_files(Stream& stream, std::span<const std::byte> bytes,
                                                            std::span<const AttachedFile> files);

struct ReadWithFile {
  boost::system::error_code failed;
  std::size_t bytes{};  // at least one, unless it failed
  Descriptor file;      // at most one: the kernel closes what came beyond it
};

/// Must be of a process of our own user only: closing a descriptor of others may wait for them.
asio::awaitable<ReadWithFile> read_some_with_file(Stream& stream, std::span<std::byte> into);

}  // namespace motley::transport
