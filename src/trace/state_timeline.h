// What held from when to when, one number at a time: a state, a reason, a group. Stretches too short to be seen grow together whenever
// there are too many, so memory does not grow with the length of the run; how long each number held stays exact.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace motley::trace {

class StateTimeline {
 public:
  static constexpr std::size_t max_changes = 512;
  using Value = std::optional<std::uint32_t>;  // none: nothing to be told of that time

  struct Stretch {
    double from_s = 0;
    double to_s = 0;
    std::uint32_t value = 0;
    bool operator==(const Stretch&) const = default;
  };

  /// `value` holds from now on. What is told out of order of time holds from the latest time yet told.
  void change(double now_s, Value value);

  /// Those with a value, in order of time; the last one ends at `until_s`. Of two that grew together the longer has won, and any over none.
  [[nodiscard]] std::vector<Stretch> stretches(double until_s) const;
  /// Seconds that each value held, up to `until_s`.
  [[nodiscard]] std::map<std::uint32_t, double> lasted(double until_s) const;

 private:
  struct Change {
    double at_s = 0;
    Value value;
  };
  void add(const Change& turn);
  void thin();
  static Change stronger(const Change& first, const Change& second, double end_s);

  std::vector<Change> changes_;
  double finest_s_ = 1e-3;  // two neighbours that are shorter together may grow together
  std::map<std::uint32_t, double> lasted_;
  double since_s_ = 0;  // the last value holds
};

}  // namespace motley::trace
