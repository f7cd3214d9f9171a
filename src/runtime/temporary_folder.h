// A folder that goes when this does, with all that is in it. It is locked as long as its process lives: those of processes that were killed
// go when the next one of that name is made.
#pragma once
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley::runtime {

class TemporaryFolder {
 public:
  TemporaryFolder() = default;  // none
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// NAME-XXXXXX where the system has such folders; short, as the path of a socket must be. `what_for` goes into the error.
  /// Removes those that nobody has locked.
  static Result<TemporaryFolder> make(const std::string& name, const std::string& what_for);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] bool none() const { return path_.empty(); }

 private:
  std::filesystem::path path_;
  int lock_ = -1;  // the folder itself, opened
};

}  // namespace motley::runtime
