// The secret of a run whose user gave none: RUN/token, which this user alone may read. Whoever has the file may join the run; the same
// secret serves every --resume.
#pragma once
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley::runtime {

class RunToken {
 public:
  /// The one that lies in the run's folder; without one a new one, which is nowhere yet. Refuses a file that others may read.
  static Result<RunToken> of(const std::filesystem::path& run);

  [[nodiscard]] const std::string& secret() const { return secret_; }
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }
  /// Writes a new one into the run's folder, which must be there by now.
  [[nodiscard]] Outcome keep() const;

 private:
  RunToken(std::filesystem::path file, std::string secret, bool fresh)
      : file_(std::move(file)), secret_(std::move(secret)), fresh_(fresh) {}

  std::filesystem::path file_;
  std::string secret_;
  bool fresh_;
};

}  // namespace motley::runtime
