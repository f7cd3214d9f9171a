// Sends and receives bytes with file descriptors over a unix socket (SCM_RIGHTS), and identifies the peer's process (SO_PEERCRED). A
// descriptor is attached to one byte and arrives when that byte is read with read_some_with_file(); any other read drops it.
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

/// The process at the other end, as the kernel recorded it when the two connected. An error when it belongs to another user or the stream
/// is not a unix socket: then no memory is shared.
Result<pid_t> process_of_our_user(Stream& stream);

struct AttachedFile {
  std::size_t at{};  // index of the byte to which it is attached
  std::shared_ptr<const Descriptor> file;
};

/// Writes all bytes. `files` are ordered by `at`; both spans must stay valid until it is done.
asio::awaitable<boost::system::error_code> write_with_files(Stream& stream, std::span<const std::byte> bytes,
                                                            std::span<const AttachedFile> files);

struct ReadWithFile {
  boost::system::error_code failed;
  std::size_t bytes{};  // at least one, unless it failed
  Descriptor file;      // at most one: the kernel closes further ones
};

/// Only for a peer of our own user: closing a descriptor from another user's file system may block.
asio::awaitable<ReadWithFile> read_some_with_file(Stream& stream, std::span<std::byte> into);

}  // namespace motley::transport
