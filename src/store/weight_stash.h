// Weight stashing at a server: keeps the parameters that workers were sent and compute on (their bases), so that late gradients can be
// compensated for the updates since.
//
// One copy per version and look-ahead serves all workers that were sent it. A worker has one base, the last it was sent; a copy that is no
// worker's base is freed, and the oldest is freed when there are more than `max_versions`.
// Memory: at most `max_versions` times this server's parameters; usually one, and one more for each straggler.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "base/ids.h"
#include "store/constants.h"
#include "store/floats.h"

namespace motley::store {

/// Names the parameters that a worker was sent for one step.
struct PullId {
  WorkerId worker;
  Step step;
};

class WeightStash {
 public:
  explicit WeightStash(std::size_t max_versions = max_stashed_versions) : max_versions_(max_versions) {}

  /// If the parameters of this version and look-ahead are stashed, makes them the base of `sent` and returns true. Versions only grow.
  [[nodiscard]] bool reuse(const PullId& sent, Version version, double rho);
  void keep(const PullId& sent, Version version, double rho, Floats values);
  /// A buffer for keep(): the one freed last if there is one, since page faults of fresh memory cost more than writing it.
  [[nodiscard]] Floats take_buffer(std::size_t values);
  void forget(WorkerId worker);
  /// Empty: not stashed, or freed.
  [[nodiscard]] std::span<const float> find(const PullId& sent) const;
  /// Memory of all copies.
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Key {
    Version version;
    double rho{};
    auto operator<=>(const Key&) const = default;
  };
  struct Held {
    Step step;
    std::shared_ptr<Floats> values;
  };
  void free_unused();

  std::size_t max_versions_;
  std::map<Key, std::shared_ptr<Floats>> ring_;
  Floats spare_;
  std::map<WorkerId, Held> held_;
};

}  // namespace motley::store
