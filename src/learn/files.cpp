// zlib reads plain files through the same call, so packed and plain share one path.
#include "learn/files.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace motley::learn {

namespace {

constexpr std::size_t max_bytes = std::size_t{1} << 30;
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

/// zlib's reason, or the system's where zlib only says "errno".
std::string reason(gzFile_s* file) {
  int code = Z_OK;
  const char* text = gzerror(file, &code);
  if (code == Z_ERRNO) return std::strerror(errno);
  if (code == Z_BUF_ERROR) return "a gzip stream cut short";
  return fmt::format("a damaged gzip stream ({})", text);
}

}  // namespace

Error bad_file(const std::filesystem::path& file, std::string_view found, std::string_view expected, std::string_view remedy) {
  return bad_input(fmt::format("cannot read {}: found {}, expected {}; {}", file.string(), found, expected, remedy));
}

Result<Bytes> read_file(const std::filesystem::path& file, std::string_view expected, std::string_view remedy) {
  const std::unique_ptr<gzFile_s, CloseGz> stream(gzopen(file.c_str(), "rb"));
  if (!stream) return bad_file(file, errno == ENOENT ? "no such file" : std::strerror(errno), expected, remedy);
  gzbuffer(stream.get(), piece_bytes);

  Bytes bytes;
  std::size_t used = 0;
  for (;;) {
    bytes.resize(std::max(bytes.size(), used + piece_bytes));
    const int got = gzread(stream.get(), bytes.data() + used, piece_bytes);
    if (got < 0) return bad_file(file, reason(stream.get()), expected, remedy);
    used += static_cast<std::size_t>(got);
    if (used > max_bytes) return bad_file(file, "more than 1 GiB", expected, remedy);
    if (static_cast<std::size_t>(got) == piece_bytes) {
      if (used + piece_bytes > bytes.size()) bytes.resize(2 * used);  // grow by doubling: few moves of a large file
      continue;
    }
    int code = Z_OK;  // a short read is the end of the file, or of a stream that should have gone on
    gzerror(stream.get(), &code);
    if (code != Z_OK && code != Z_STREAM_END) return bad_file(file, reason(stream.get()), expected, remedy);
    bytes.resize(used);
    return bytes;
  }
}

std::filesystem::path plain_or_packed(const std::filesystem::path& folder, std::string_view name) {
  const std::filesystem::path plain = folder / name;
  std::filesystem::path packed = plain;
  packed += ".gz";
  std::error_code ignored;
  return std::filesystem::exists(plain, ignored) ? plain : packed;
}

}  // namespace motley::learn
