// Bases: what workers were sent and compute on, kept at a server so that what comes back late can be compensated for what has changed
// since.
//
// A ring of versions: those sent to several workers at once are kept once, those that nobody computes on any more are freed, and of the
// rest the oldest goes when there are more than `most`. A worker has one base: the last it was sent.
// Memory: at most `most` times this server's parameters; usually one, and one more for each straggler.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "base/ids.h"
#include "store/floats.h"

namespace motley::store {

/// What one worker was sent for one step.
struct PullId {
  WorkerId worker;
  Step step;
};

class WeightStash {
 public:
  static constexpr std::size_t usual_most = 18;  // versions: what is later than 16 is not compensated
  explicit WeightStash(std::size_t most = usual_most) : most_(most) {}

  /// True when these values are here already; then `sent` is noted. Versions only grow.
  [[nodiscard]] bool reuse(const PullId& sent, Version version, double rho);
  void keep(const PullId& sent, Version version, double rho, Floats values);
  /// Of this size, for keep(): what was freed last if it fits, since fresh memory costs more time than what is written to it.
  [[nodiscard]] Floats take_buffer(std::size_t values);
  void forget(WorkerId worker);
  /// Empty: not here (any more).
  [[nodiscard]] std::span<const float> find(const PullId& sent) const;
  /// All that is kept.
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

  std::size_t most_;
  std::map<Key, std::shared_ptr<Floats>> ring_;
  Floats spare_;
  std::map<WorkerId, Held> held_;
};

}  // namespace motley::store
