// A temporary folder, removed with its contents by the destructor. It is locked while its process lives, so that folders of killed
// processes can be recognised and removed when the next one of that name is made.
#pragma once
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley::runtime {

class TemporaryFolder {
 public:
  TemporaryFolder() = default;  // no folder
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// Makes NAME-XXXXXX in the system's temporary folder; short, since paths of sockets are limited. `what_for` is part of the error.
  /// Removes folders of that pattern that no process has locked.
  static Result<TemporaryFolder> make(const std::string& name, const std::string& what_for);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] bool none() const { return path_.empty(); }

 private:
  std::filesystem::path path_;
  int lock_ = -1;  // file descriptor of the folder
};

}  // namespace motley::runtime
