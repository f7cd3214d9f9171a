// Maps a lease's positions to samples: each epoch is a seeded permutation of the training set, the same in every process. With shards, an
// epoch holds the samples of one shard after those of another.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/lease.h"

namespace motley::store {

/// The shard of each sample.
using Shards = std::shared_ptr<const std::vector<std::uint32_t>>;

/// Shards of equal size (to one sample) that each contain as few labels as possible.
[[nodiscard]] std::vector<std::uint32_t> shards_by(const std::vector<std::uint32_t>& labels, std::uint64_t shards);

class Epochs {
 public:
  /// `shards`: the shard of each sample; null: none.
  Epochs(std::uint64_t epoch_samples, std::uint64_t seed, Shards shards = nullptr)
      : epoch_samples_(epoch_samples), seed_(seed), shards_(std::move(shards)) {}

  /// The samples of the lease, in its order, valid until the next call. Permutations are made when first needed; only the newest few are
  /// cached.
  const std::vector<std::uint32_t>& samples_of(const Lease& lease);
  /// The same, into `out`.
  void samples_of(const Lease& lease, std::vector<std::uint32_t>& out);

  /// Predicts the lease after `now`: as large, and as far after it as `now` is after `before`, which holds for a worker in a constant set
  /// of workers. Empty: no prediction.
  [[nodiscard]] Lease likely_after(const Lease& before, const Lease& now) const;

 private:
  const std::vector<std::uint32_t>& permutation_of(std::uint32_t epoch);

  std::uint64_t epoch_samples_;
  std::uint64_t seed_;
  Shards shards_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> permutations_;
  std::vector<std::uint32_t> samples_;
};

}  // namespace motley::store
