#include "runtime/temporary_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace motley::runtime {

namespace fs = std::filesystem;

namespace {

constexpr const char* drawn = "XXXXXX";  // replaced by mkdtemp()

/// Opens and locks a folder of this user; below 0: it is another user's, or a process has locked it.
int lock_folder(const fs::path& path) {
  const int opened = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat facts {};
  if (opened < 0 || (fstat(opened, &facts) == 0 && facts.st_uid == geteuid() && flock(opened, LOCK_EX | LOCK_NB) == 0)) return opened;
  close(opened);
  return -1;
}

bool is_one(const fs::path& path, const std::string& name) {
  const std::string file = path.filename().string(), begin = name + "-";
  return file.size() == begin.size() + std::strlen(drawn) && file.starts_with(begin) &&
         std::all_of(file.end() - static_cast<std::ptrdiff_t>(std::strlen(drawn)), file.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0; });
}

void remove_abandoned(const std::string& name) {
  std::error_code failed;
  std::vector<fs::path> ones;
  for (fs::directory_iterator entry(fs::temp_directory_path(), failed), end; !failed && entry != end; entry.increment(failed))
    if (is_one(entry->path(), name)) ones.push_back(entry->path());
  for (const fs::path& path : ones) {
    const int locked = lock_folder(path);
    if (locked < 0) continue;
    fs::remove_all(path, failed);
    close(locked);
  }
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make(const std::string& name, const std::string& what_for) {
  remove_abandoned(name);
  constexpr int max_tries = 8;  // on a file system without locks no process removes folders either
  for (int tries = 1;; ++tries) {
    std::string pattern = (fs::temp_directory_path() / (name + "-" + drawn)).string();
    if (mkdtemp(pattern.data()) == nullptr)
      return world_failed(fmt::format("{}: a folder for {} cannot be made: {}", pattern, what_for, std::strerror(errno)));
    TemporaryFolder made;
    made.path_ = pattern;
    made.lock_ = lock_folder(pattern);
    std::error_code gone;
    if (tries == max_tries || (made.lock_ >= 0 && fs::exists(pattern, gone))) return made;  // else another process took it for abandoned
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!none()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

}  // namespace motley::runtime
