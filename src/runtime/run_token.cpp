#include "runtime/run_token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "transport/descriptor.h"
#include "transport/proof.h"

namespace motley::runtime {
namespace {

using transport::Descriptor;

std::string new_secret() {
  std::string hex;
  for (const std::byte b : transport::random_bytes<32>()) hex += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return hex;
}

Error refused(const std::filesystem::path& file, const std::string& found) {
  return bad_input(fmt::format("{}: found {}, expected a secret that this user alone may read (mode 600); remove it for a new one",
                               file.string(), found));
}

}  // namespace

Result<RunToken> RunToken::of(const std::filesystem::path& run) {
  std::filesystem::path path = std::filesystem::absolute(run) / "token";
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0 && errno == ENOENT) return RunToken(std::move(path), new_secret(), true);
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) return refused(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return refused(path, "no plain file");
  if (status.st_uid != ::geteuid()) return refused(path, fmt::format("a file of user {}", status.st_uid));
  if ((status.st_mode & 077U) != 0) return refused(path, fmt::format("mode {:03o}", status.st_mode & 0777U));
  std::array<char, 256> text{};
  const ssize_t got = ::read(file.number(), text.data(), text.size());
  std::string secret(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  secret.erase(std::min(secret.find_first_of(" \r\n"), secret.size()));
  if (secret.empty()) return refused(path, "no text");
  return RunToken(std::move(path), std::move(secret), false);
}

Outcome RunToken::keep() const {
  if (!fresh_) return Done{};
  const std::string text = secret_ + "\n";
  const Descriptor file(::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.number() < 0 || ::write(file.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return world_failed(fmt::format("{}: the run's token cannot be written: {}", file_.string(), std::strerror(errno)));
  return Done{};
}

}  // namespace motley::runtime
