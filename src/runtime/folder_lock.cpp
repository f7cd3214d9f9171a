#include "runtime/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace motley::runtime {
namespace {

/// "process 123", or "another process" if the file holds no number.
std::string owner_in(int file) {
  std::array<char, 16> text{};
  const ssize_t got = pread(file, text.data(), text.size(), 0);
  std::string digits;
  for (ssize_t i = 0; i < got && text[static_cast<std::size_t>(i)] >= '0' && text[static_cast<std::size_t>(i)] <= '9'; ++i)
    digits += text[static_cast<std::size_t>(i)];
  return digits.empty() ? "another process" : "process " + digits;
}

}  // namespace

Result<FolderLock> FolderLock::take(const std::filesystem::path& folder, const std::string& name) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::filesystem::path path = folder / name;
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0)
    return bad_input(fmt::format("the run's folder {} cannot be written ({}); expected a writable place (choose one with --out)",
                                 folder.string(), std::strerror(errno)));
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    const std::string owner = owner_in(file);
    close(file);
    if (why == EWOULDBLOCK)
      return bad_input(
          fmt::format("the run's folder {}: found it in use by {}, expected one that no running chief writes to; wait until "
                      "that has ended, stop it, or choose another folder with --out",
                      folder.string(), owner));
    return bad_input(
        fmt::format("{}: cannot be locked: {}; choose a folder on another file system with --out", path.string(), std::strerror(why)));
  }
  FolderLock lock;
  lock.file_ = file;
  const std::string owner = fmt::format("{}\n", getpid());
  if (ftruncate(file, 0) == 0) (void)!pwrite(file, owner.data(), owner.size(), 0);  // the lock holds even if the disk is full
  return lock;
}

FolderLock::~FolderLock() {
  if (!held()) return;
  (void)!ftruncate(file_, 0);  // this process no longer uses the folder
  close(file_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

}  // namespace motley::runtime
