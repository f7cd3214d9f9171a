// The state of a strategy as a checkpoint stores it: named numbers and counts. A reader accepts nothing else: a name that is missing or
// unknown, a value of the wrong type or out of its range is an error that names it.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace motley::policy {

using SavedValue = std::variant<double, std::uint64_t>;  // a number, or a count
using SavedState = std::map<std::string, SavedValue, std::less<>>;

/// Adds to a state. Each name is written once.
class StateWriter {
 public:
  explicit StateWriter(SavedState& state) : state_(state) {}
  void number(std::string_view name, double value);
  void count(std::string_view name, std::uint64_t value);

 private:
  SavedState& state_;
};

/// Reads a state that may come from anywhere. After the first fault every value reads as 0; finish() says what was wrong.
class StateReader {
 public:
  explicit StateReader(const SavedState& state) : state_(state) {}

  /// The number of this name, which must lie in [least, most] and be finite.
  [[nodiscard]] double number(std::string_view name, double least = 0, double most = std::numeric_limits<double>::max());
  /// The count of this name, which must not exceed `most`.
  [[nodiscard]] std::uint64_t count(std::string_view name, std::uint64_t most = most_count);

  /// Fails when a value was missing or wrong, or when the state holds a name that was not read.
  [[nodiscard]] Outcome finish() const;

 private:
  static constexpr std::uint64_t most_count = std::uint64_t{1} << 53;  // a JSON number is a double to many readers
  [[nodiscard]] const SavedValue* find(std::string_view name);
  void fail(std::string problem);

  const SavedState& state_;
  std::set<std::string, std::less<>> read_;
  std::string problem_;  // the first
};

}  // namespace motley::policy
