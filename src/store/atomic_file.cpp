#include "store/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace motley::store {
namespace {

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

/// If it returns false, errno says why.
bool write_and_sync(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return false;
  const bool written = std::all_of(pieces.begin(), pieces.end(), [&](auto piece) { return write_all(file, piece); }) && fsync(file) == 0;
  const int reason = errno;
  const bool closed = close(file) == 0;
  if (!written) errno = reason;
  return written && closed;
}

/// A rename is durable once its folder is synced. File systems that cannot sync folders return EINVAL; nothing more can be done there.
bool sync_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return false;
  const bool synced = fsync(opened) == 0 || errno == EINVAL;
  const int reason = errno;
  close(opened);
  errno = reason;
  return synced;
}

}  // namespace

Outcome write_atomically(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces) {
  std::filesystem::path beside = path;
  beside += ".part";
  if (write_and_sync(beside, pieces) && std::rename(beside.c_str(), path.c_str()) == 0 && sync_folder_of(path)) return Done{};
  const std::string reason = std::strerror(errno);
  std::error_code ignored;
  std::filesystem::remove(beside, ignored);
  return world_failed(fmt::format("writing {}: {}; is there space, and may this user write there?", path.string(), reason));
}

Outcome write_atomically(const std::filesystem::path& path, std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return write_atomically(path, std::span(&bytes, 1));
}

}  // namespace motley::store
