// A lock on a folder that one process may use at a time. The kernel releases it when the process ends, for whatever reason.
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

  /// Locks folder/NAME and writes the id of this process into it; creates both when they are missing. Refused while another process holds
  /// the lock; the error has that process's id. Children do not inherit the lock.
  static Result<FolderLock> take(const std::filesystem::path& folder, const std::string& name);

  [[nodiscard]] bool held() const { return file_ >= 0; }

 private:
  int file_ = -1;
};

/// Of a run: `run.lock` is held by the process that the user has started (train or chief), `chief.lock` by the one that writes (chief).
inline constexpr const char* run_lock = "run.lock";
inline constexpr const char* chief_lock = "chief.lock";

}  // namespace motley::runtime
