#include "app/temporary_folder.h"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>
#include <utility>

namespace motley::app {

namespace fs = std::filesystem;

Result<TemporaryFolder> TemporaryFolder::make(const std::string& name, const std::string& what_for) {
  std::string pattern = (fs::temp_directory_path() / (name + "-XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr) return world_failed(fmt::format("{}: a folder for {} cannot be made", pattern, what_for));
  TemporaryFolder made;
  made.path_ = pattern;
  return made;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!none()) fs::remove_all(path_, ignored);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

}  // namespace motley::app
