// Sizes of batches that a device has met. One with a grain (a GPU) does a step at once and so decides before it begins how many samples fit
// into its time; and the first step of each size takes it longer, since its libraries choose their algorithms then.
#pragma once
#include <cstdint>
#include <set>

#include "base/time.h"

namespace motley::cluster {

class KnownBatchSizes {
 public:
  /// True: for the first time.
  bool note_batch_size(std::uint64_t size) { return sizes_.insert(size).second; }
  [[nodiscard]] bool contains(std::uint64_t size) const { return sizes_.contains(size); }
  /// A step of so many samples took this long, and was not the first of its size.
  void observe(std::uint64_t samples, Duration time);

  /// How many of `most` samples to do by `limit`, after `done` others, as far as is known: a size that was met, if it is nearly as much as
  /// would fit; else whole grains, at least one. A limit of 0 is none.
  [[nodiscard]] std::uint64_t largest_fitting(std::uint64_t most, Duration limit, std::uint32_t batch_multiple,
                                              std::uint64_t done = 0) const;

 private:
  std::set<std::uint64_t> sizes_;
  double sample_s_ = 0;  // what a sample has taken lately; 0: not known
};

}  // namespace motley::cluster
