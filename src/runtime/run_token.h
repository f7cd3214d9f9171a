// The secret of a run whose user gave none: RUN/token, readable by this user only. A process with the secret may join the run; --resume
// uses the same one.
#pragma once
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley::runtime {

class RunToken {
 public:
  /// Reads the token of the run's folder, or makes a new one if there is none. Fails if other users may read the file.
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
