// What a strategy has put into a checkpoint, read back number by number in the order in which it was saved. The file may hold anything: a
// number that is missing or out of its range makes all of it bad, and 0 takes its place.
#pragma once
#include <cstdint>
#include <limits>
#include <span>

namespace motley::policy {

class SavedState {
 public:
  explicit SavedState(std::span<const double> numbers) : left_(numbers) {}

  /// The next number, which must lie in [least, most] and be finite.
  [[nodiscard]] double number(double least = 0, double most = std::numeric_limits<double>::max());
  /// The same for what was counted: a whole number.
  [[nodiscard]] std::uint64_t count(std::uint64_t most = most_count);

  /// Every number so far was there and in its range, and none is left.
  [[nodiscard]] bool all_read() const { return good_ && left_.empty(); }

 private:
  static constexpr std::uint64_t most_count = std::uint64_t{1} << 53;  // beyond it a double does not hold every whole number
  std::span<const double> left_;
  bool good_ = true;
};

}  // namespace motley::policy
