// Files that a run appends to, and the record of failed writes. A failed write stops no training; it is reported once and shows in the exit
// code.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace motley::report {

/// Incomplete files of a run's folder, by name.
class WriteErrors {
 public:
  explicit WriteErrors(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}
  /// Reported when it is the first failure of this file.
  void failed(const std::string& file, const std::string& reason);
  /// It was incomplete before this run went on.
  void lacks(const std::string& file, const std::string& what);
  /// A later write has replaced the missing content.
  void mended(const std::string& file) { reasons_.erase(file); }
  [[nodiscard]] bool none() const { return reasons_.empty(); }
  /// "trace.bin, metrics.jsonl".
  [[nodiscard]] std::string files() const;

 private:
  std::function<void(const std::string&)> tell_;
  std::map<std::string, std::string> reasons_;
};

/// An appended file. Writes are buffered; after a failed one no more is written, and the file ends with the last complete write.
/// One thread; but sync() may be called from another.
class AppendFile {
 public:
  enum class Begin { anew, at_end };
  /// `errors` outlives this.
  AppendFile(std::filesystem::path path, Begin begin, WriteErrors& errors);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Passes written data to the kernel, so that it outlives this process.
  void flush();
  /// Flushed data is on the disk, so that it outlives a power failure.
  Outcome sync() const;

 private:
  [[nodiscard]] bool write_out();
  void fail();

  std::filesystem::path path_;
  WriteErrors& errors_;
  int file_ = -1;
  bool good_ = true;
  std::vector<std::byte> waiting_;
};

}  // namespace motley::report
