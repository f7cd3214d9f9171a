// Predicts a server's next update from its last two: if the same workers contributed to both with the same weights, the next one is
// expected to be like them, at the learning rate that the last one announced (synchronous training always is so). A slice can then be
// summed and applied beside the current values as soon as all workers' gradients of it have arrived. A wrong prediction costs that work,
// nothing else.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "wire/message.h"

namespace motley::protocol {

class SpeculativeUpdate {
 public:
  /// `slices`: how many slices the server has. Slices are named by their place among them.
  explicit SpeculativeUpdate(std::size_t slices) : slices_(slices) {}

  /// The server begins this update. Returns whether another one like it is expected; slices that arrive from now on belong to that.
  bool updated(const wire::Apply& update);

  /// A slice of this worker's contribution for this step has arrived. Returns whether the slice has now arrived from every expected worker.
  bool arrived(WorkerId worker, Step step, std::size_t slice);
  /// This contribution was discarded. If the expected update includes it, nothing is expected any more.
  void discarded(WorkerId worker, Step step);

  /// The parts of the expected update, in its order. A part has the step of the last update until its first slice arrives.
  [[nodiscard]] const std::vector<wire::Part>& parts() const { return parts_; }
  /// Whether `update` is the expected one.
  [[nodiscard]] bool matches(const wire::Apply& update) const;

 private:
  /// Apart from their learning rates and steps.
  static bool alike(const wire::Apply& a, const wire::Apply& b);

  std::size_t slices_;
  std::optional<wire::Apply> last_;
  bool expecting_ = false;
  std::vector<wire::Part> parts_;
  std::vector<std::vector<bool>> arrived_;  // by part, by slice; empty until the first slice arrives
  std::vector<std::uint32_t> missing_;      // by slice: parts that have not arrived
};

}  // namespace motley::protocol
