// Which samples a lease means: each epoch is a seeded permutation of the training set, the same in every process.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "base/lease.h"

namespace motley::store {

class Epochs {
 public:
  Epochs(std::uint64_t epoch_samples, std::uint64_t seed) : epoch_samples_(epoch_samples), seed_(seed) {}

  /// The samples of the lease, in its order, good until the next call. Permutations are made when first needed; all but the newest few
  /// are forgotten and made again when asked for.
  const std::vector<std::uint32_t>& samples_of(const Lease& lease);

 private:
  const std::vector<std::uint32_t>& permutation_of(std::uint32_t epoch);

  std::uint64_t epoch_samples_;
  std::uint64_t seed_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> permutations_;
  std::vector<std::uint32_t> samples_;
};

}  // namespace motley::store
