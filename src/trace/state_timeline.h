// The values of one variable over time: a state, a reason or a group, by number. Short stretches are merged whenever there are too many, so
// memory does not grow with the length of the run; the total time of each value stays exact.
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
  using Value = std::optional<std::uint32_t>;  // none: no value at that time

  struct Stretch {
    double from_s = 0;
    double to_s = 0;
    std::uint32_t value = 0;
    bool operator==(const Stretch&) const = default;
  };

  /// `value` holds from `now_s` on, or from the latest time of earlier calls if that is later.
  void change(double now_s, Value value);

  /// Stretches that have a value, in order of time; the last one ends at `until_s`. Two merged stretches have the value of the longer one
  /// that has any.
  [[nodiscard]] std::vector<Stretch> stretches(double until_s) const;
  /// Seconds that each value held, up to `until_s`.
  [[nodiscard]] std::map<std::uint32_t, double> lasted(double until_s) const;

 private:
  struct Change {
    double at_s = 0;
    Value value;
  };
  void add(const Change& change);
  void thin();
  static Change stronger(const Change& first, const Change& second, double end_s);

  std::vector<Change> changes_;
  double finest_s_ = 1e-3;  // two neighbours that are shorter together may be merged
  std::map<std::uint32_t, double> lasted_;
  double since_s_ = 0;  // begin of the last value
};

}  // namespace motley::trace
