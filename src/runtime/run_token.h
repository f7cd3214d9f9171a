// The token of a run whose user gave none: RUN/token, which only this user may read. A process with this token may join the run; it is the
// same after every --resume.
#pragma once
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley::runtime {

class RunToken {
 public:
  /// The token in the run's folder, or a new one that is not written yet. Refuses a file that other users may read.
  static Result<RunToken> of(const std::filesystem::path& run);

  [[nodiscard]] const std::string& secret() const { return secret_; }
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }
  /// Writes a new token into the run's folder, which must exist.
  [[nodiscard]] Outcome keep() const;

 private:
  RunToken(std::filesystem::path file, std::string secret, bool fresh)
      : file_(std::move(file)), secret_(std::move(secret)), fresh_(fresh) {}

  std::filesystem::path file_;
  std::string secret_;
  bool fresh_;
};

}  // namespace motley::runtime
