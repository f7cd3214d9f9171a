// Incremental SHA-256.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace motley::store {

class FileHash {
 public:
  FileHash();
  ~FileHash();
  FileHash(const FileHash&) = delete;
  FileHash& operator=(const FileHash&) = delete;

  void add(std::span<const std::byte> bytes);
  /// 64 hexadecimal digits. No call of add() may follow.
  [[nodiscard]] std::string digits();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

inline constexpr std::size_t hash_digits = 64;

}  // namespace motley::store
