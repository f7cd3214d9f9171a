// What a run writes while it goes on: files that grow, and what could not be written of them. A failed write stops no training; it is told
// once and ends in the exit code.
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

/// What of a run's folder is not as it should be, by the name of the file.
class WriteErrors {
 public:
  explicit WriteErrors(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}
  /// Told when it is the first of this file.
  void failed(const std::string& file, const std::string& reason);
  /// It was incomplete before this run went on.
  void lacks(const std::string& file, const std::string& what);
  /// What was missing is there after all.
  void mended(const std::string& file) { reasons_.erase(file); }
  [[nodiscard]] bool none() const { return reasons_.empty(); }
  /// "trace.bin, metrics.jsonl".
  [[nodiscard]] std::string files() const;

 private:
  std::function<void(const std::string&)> tell_;
  std::map<std::string, std::string> reasons_;
};

/// A file that grows. Writes are gathered; after one that fails nothing more is written, and the file ends with the last whole one before.
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
  /// What was written is the kernel's: it outlives this process.
  void flush();
  /// What was flushed is on the disk: it outlives the machine's power.
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
