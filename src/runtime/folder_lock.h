// A folder that one process may use at a time. The kernel lets go of the lock when the process ends, however that goes.
#pragma once
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley::runtime {

class FolderLock {
 public:
  FolderLock() = default;  // of nothing
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Locks folder/NAME, in which the number of this process is written; makes both when they are missing. Refused while another process
  /// has it, whose number is in the error. Children do not inherit it.
  static Result<FolderLock> take(const std::filesystem::path& folder, const std::string& name);

  [[nodiscard]] bool held() const { return file_ >= 0; }

 private:
  int file_ = -1;
};

/// Of a run: `run.lock` belongs to the process that the user has started (train, serve), `chief.lock` to the one that writes (serve).
inline constexpr const char* run_lock = "run.lock";
inline constexpr const char* chief_lock = "chief.lock";

}  // namespace motley::runtime
