// The batch sizes that a device has used. A device with a batch multiple (a GPU) runs a step in one piece, so it decides before the step
// how many samples fit into the time limit; and its first step of each size takes longer, since its libraries choose their algorithms then.
#pragma once
#include <cstdint>
#include <set>

#include "base/time.h"

namespace motley::cluster {

class KnownBatchSizes {
 public:
  /// Returns whether the size is new.
  bool note_batch_size(std::uint64_t size) { return sizes_.insert(size).second; }
  [[nodiscard]] bool contains(std::uint64_t size) const { return sizes_.contains(size); }
  /// A step of so many samples took this long, and was not the first of its size.
  void observe(std::uint64_t samples, Duration time);

  /// How many of `most` samples to compute within `limit`, after `done` others: a known size if it is nearly as much as fits, else whole
  /// batch multiples, at least one. A limit of 0 is none.
  [[nodiscard]] std::uint64_t largest_fitting(std::uint64_t most, Duration limit, std::uint32_t batch_multiple,
                                              std::uint64_t done = 0) const;

 private:
  std::set<std::uint64_t> sizes_;
  double sample_s_ = 0;  // time per sample, moving mean; 0: not known
};

}  // namespace motley::cluster
