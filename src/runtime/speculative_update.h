// Guesses a server's next update from its last two: when the same workers contributed to both, with the same weights, the same will come
// again, at the rate that the last one announced, as it does wherever everybody waits for everybody. So a slice can be summed and applied,
// beside the values that count, as soon as it is here from all of them, and the update's word finds the work done. A wrong guess costs the
// work and nothing else. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "wire/message.h"

namespace motley::runtime {

class SpeculativeUpdate {
 public:
  /// `slices`: how many a contribution has in all, of which this server has some.
  explicit SpeculativeUpdate(std::size_t slices) : slices_(slices) {}

  /// This update was made. True: another like it is expected, and slices count for it from now on.
  bool made(const wire::Apply& update);

  /// This slice of this contribution is here. True: it is here from everybody whose it must be.
  bool arrived(WorkerId worker, Step step, SliceId slice);
  /// This contribution is gone: the guess is wrong.
  void lost(WorkerId worker, Step step);

  /// Who contributes to what is expected, in its order; steps as far as they have come.
  [[nodiscard]] const std::vector<wire::Part>& parts() const { return parts_; }
  /// Whether this is what was expected.
  [[nodiscard]] bool right(const wire::Apply& update) const;

 private:
  /// But for their rates.
  static bool alike(const wire::Apply& a, const wire::Apply& b);

  std::size_t slices_;
  std::optional<wire::Apply> last_;
  bool expecting_ = false;
  std::vector<wire::Part> parts_;
  std::vector<std::vector<bool>> here_;  // by part, by slice
  std::vector<std::uint32_t> missing_;   // parts, by slice
};

}  // namespace motley::runtime
