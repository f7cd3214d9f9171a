// Divides the samples of a pipeline's training into mini-batches (one update each), and a mini-batch into micro-batches. The last
// mini-batch may be smaller, so that every sample is used.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

namespace motley {

/// Of a training without an end.
inline constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();

/// Mini-batch n has positions [n * samples, (n + 1) * samples), counted across epochs as leases are, so it may contain samples of two
/// epochs. The last one has the remaining samples, in fewer micro-batches of about the usual size, none of them empty. Micro-batch k
/// belongs to mini-batch k / micros.
struct Batching {
  std::uint64_t total = no_end;  // samples of the whole training
  std::uint64_t samples = 1;     // of a mini-batch
  std::uint32_t micros = 1;      // of a mini-batch; at most `samples`

  struct Positions {
    std::uint64_t first = 0;
    std::uint64_t last = 0;  // that is not in it
    [[nodiscard]] std::uint64_t size() const { return last - first; }
  };

  [[nodiscard]] std::uint64_t mini_batches() const { return total / samples + (total % samples > 0 ? 1 : 0); }
  /// Samples of the first `minis` mini-batches.
  [[nodiscard]] std::uint64_t until(std::uint64_t minis) const { return minis <= total / samples ? minis * samples : total; }
  [[nodiscard]] std::uint64_t size_of(std::uint64_t mini) const { return until(mini + 1) - until(mini); }
  [[nodiscard]] std::uint64_t micros_of(std::uint64_t mini) const { return (size_of(mini) * micros + samples - 1) / samples; }
  /// Of the whole training.
  [[nodiscard]] std::uint64_t micro_batches() const {
    return total / samples * micros + (total % samples * micros + samples - 1) / samples;
  }
  /// Must be one of the training's.
  [[nodiscard]] Positions of_micro(std::uint64_t micro) const {
    const std::uint64_t mini = micro / micros;
    const std::uint64_t of = std::max<std::uint64_t>(1, micros_of(mini));
    const std::uint64_t m = micro % micros;
    return {until(mini) + m * size_of(mini) / of, until(mini) + (m + 1) * size_of(mini) / of};
  }
};

}  // namespace motley
