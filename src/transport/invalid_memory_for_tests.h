// For this module's tests: descriptors that a malicious peer may send where a sealed memfd is expected. Reading some of them would raise
// SIGBUS.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "transport/segment.h"
#include "transport/stream.h"
#include "wire/frame.h"

namespace motley::transport {

struct Invalid {
  std::string what;
  Descriptor file;
  std::size_t claimed_bytes{};
};

inline Descriptor memory_sealed_by(int seals, std::size_t bytes, unsigned more_flags = 0) {
  Descriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | more_flags));
  if (file.number() < 0) return file;  // this kernel has no huge pages
  EXPECT_EQ(::ftruncate(file.number(), static_cast<off_t>(bytes)), 0);
  EXPECT_TRUE(seals == 0 || ::fcntl(file.number(), F_ADD_SEALS, seals) == 0);
  return file;
}

/// Each claims to be `bytes` of shared memory, a multiple of 2 MiB, unless its name says otherwise.
inline std::vector<Invalid> invalid_memory(std::size_t bytes) {
  std::vector<Invalid> all;
  std::string name = testing::TempDir() + "motley-test-XXXXXX";
  Descriptor file(::mkstemp(name.data()));
  ::unlink(name.c_str());
  EXPECT_EQ(::ftruncate(file.number(), static_cast<off_t>(bytes)), 0);
  all.push_back({"a file", std::move(file), bytes});
  all.push_back({"a folder", Descriptor(::open(testing::TempDir().c_str(), O_RDONLY | O_CLOEXEC)), bytes});
  all.push_back({"a device", Descriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)), bytes});
  all.push_back({"a socket", Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), bytes});
  all.push_back({"unsealed memory", memory_sealed_by(0, bytes), bytes});
  all.push_back({"memory sealed against growing only", memory_sealed_by(F_SEAL_GROW, bytes), bytes});
  all.push_back({"less memory than claimed", memory_sealed_by(F_SEAL_SHRINK, bytes / 2), bytes});
  all.push_back({"no memory at all", memory_sealed_by(F_SEAL_SHRINK, 0), bytes});
  all.push_back({"more memory than claimed", memory_sealed_by(F_SEAL_SHRINK, bytes * 2), bytes});
  all.push_back({"memory that may not be written", memory_sealed_by(F_SEAL_SHRINK | F_SEAL_WRITE, bytes), bytes});
  if (Descriptor huge = memory_sealed_by(F_SEAL_SHRINK, bytes, MFD_HUGETLB); huge.number() >= 0)
    all.push_back({"huge pages", std::move(huge), bytes});
  return all;
}

/// The descriptor is attached to the first byte.
inline void write_raw_with_file(int socket, wire::Bytes bytes, int file) {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  *reinterpret_cast<int*>(CMSG_DATA(head)) = file;
  EXPECT_EQ(::sendmsg(socket, &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

inline void write_raw_with_file(Stream& stream, const wire::Bytes& bytes, int file) {
  write_raw_with_file(stream.native_handle(), bytes, file);
}

/// The descriptor attached to the next bytes, which must be available.
inline Descriptor read_raw_with_file(Stream& stream, wire::Bytes& bytes) {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  EXPECT_GT(::recvmsg(stream.native_handle(), &message, MSG_CMSG_CLOEXEC), 0);
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  return head == nullptr ? Descriptor() : Descriptor(*reinterpret_cast<const int*>(CMSG_DATA(head)));
}

}  // namespace motley::transport
