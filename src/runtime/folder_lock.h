// An exclusive lock of a folder. The kernel releases it when the process ends for any reason.
#pragma once
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley::runtime {

class FolderLock {
 public:
  FolderLock() = default;  // holds no lock
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Locks folder/NAME and writes the process id into it; creates both if they are missing. Fails while another process holds it, with that
  /// process id in the error. Children do not inherit it.
  static Result<FolderLock> take(const std::filesystem::path& folder, const std::string& name);

  [[nodiscard]] bool held() const { return file_ >= 0; }

 private:
  int file_ = -1;
};

/// Locks of a run's folder: `run.lock` is held by the process that the user started (train or chief), `chief.lock` by the chief, which
/// writes.
inline constexpr const char* run_lock = "run.lock";
inline constexpr const char* chief_lock = "chief.lock";

}  // namespace motley::runtime
