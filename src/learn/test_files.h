// For tests: a temporary folder, and files of given bytes in it, plain or gzip.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "learn/files.h"

namespace motley::learn {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "motley-learn-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const Bytes& bytes) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(file.good());
  }
  void write(const std::string& name, const std::string& text) const { write(name, Bytes(text.begin(), text.end())); }
  void pack(const std::string& name, const Bytes& bytes) const {
    gzFile file = gzopen((path_ / name).c_str(), "wb");
    ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
    ASSERT_EQ(gzclose(file), Z_OK);
  }
  /// Keeps only the first `bytes` of a file.
  void cut(const std::string& name, std::uintmax_t bytes) const { std::filesystem::resize_file(path_ / name, bytes); }
  void remove(const std::string& name) const { std::filesystem::remove(path_ / name); }

 private:
  std::filesystem::path path_;
};

/// Expects a refusal for the user to correct, with a message that contains each of `parts`.
template <class T>
void expect_refused(const Result<T>& loaded, std::initializer_list<std::string_view> parts) {
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().next, Next::tell_user);
  for (const std::string_view part : parts)
    EXPECT_NE(loaded.error().message.find(part), std::string::npos) << "'" << part << "' is missing from: " << loaded.error().message;
}

}  // namespace motley::learn
