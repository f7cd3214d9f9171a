#include "report/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace motley::report {
namespace {

constexpr std::size_t gathered = 1 << 16;  // bytes; fewer calls of the kernel than events

}  // namespace

void WriteErrors::failed(const std::string& file, const std::string& reason) {
  if (reasons_.emplace(file, reason).second)
    tell_(fmt::format("{}: cannot be written: {}; training goes on, the run's folder will not be complete", file, reason));
}

void WriteErrors::lacks(const std::string& file, const std::string& what) {
  if (reasons_.emplace(file, what).second) tell_(fmt::format("{} {}", file, what));
}

std::string WriteErrors::files() const {
  std::string all;
  for (const auto& [file, reason] : reasons_) all += (all.empty() ? "" : ", ") + file;
  return all;
}

AppendFile::AppendFile(std::filesystem::path path, Begin begin, WriteErrors& errors) : path_(std::move(path)), errors_(errors) {
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (begin == Begin::anew ? O_TRUNC : O_APPEND), 0666);
  if (file_ < 0) fail();
}

/// Does not report failures: callers that need them call flush() first.
AppendFile::~AppendFile() {
  if (good_) (void)write_out();
  if (file_ >= 0) close(file_);
}

void AppendFile::write(std::span<const std::byte> bytes) {
  if (!good_) return;
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  if (waiting_.size() >= gathered) flush();
}

void AppendFile::flush() {
  if (good_ && !write_out()) fail();
}

/// On false errno says why.
bool AppendFile::write_out() {
  const off_t before = lseek(file_, 0, SEEK_END);
  for (std::size_t done = 0; done < waiting_.size();) {
    const ssize_t written = ::write(file_, waiting_.data() + done, waiting_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      if (before >= 0) (void)!ftruncate(file_, before);  // a piece of a record would be in the way of those who read it or go on
      errno = reason;
      return false;
    }
    done += static_cast<std::size_t>(written);
  }
  waiting_.clear();
  return true;
}

Outcome AppendFile::sync() const {
  const bool special = file_ < 0 || fsync(file_) == 0 || errno == EINVAL || errno == EROFS;  // a device cannot be synced, and need not
  return special ? Outcome(Done{}) : world_failed(fmt::format("{}: {}", path_.string(), std::strerror(errno)));
}

void AppendFile::fail() {
  good_ = false;
  waiting_ = {};
  errors_.failed(path_.filename().string(), std::strerror(errno));
}

}  // namespace motley::report
