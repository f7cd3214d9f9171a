// Which samples a lease means: each epoch is a seeded permutation of the training set, the same in every process. With shards, samples of
// one shard lie together in it, in the order of the shards.
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

/// Shards of equal size, to one sample, such that each has as few labels as possible.
[[nodiscard]] std::vector<std::uint32_t> shards_by(const std::vector<std::uint32_t>& labels, std::uint64_t shards);

class Epochs {
 public:
  /// `shards`: null, or of each sample.
  Epochs(std::uint64_t epoch_samples, std::uint64_t seed, Shards shards = nullptr)
      : epoch_samples_(epoch_samples), seed_(seed), shards_(std::move(shards)) {}

  /// The samples of the lease, in its order, good until the next call. Permutations are made when first needed; all but the newest few
  /// are forgotten and made again when asked for.
  const std::vector<std::uint32_t>& samples_of(const Lease& lease);
  /// The same, to `out`.
  void samples_of(const Lease& lease, std::vector<std::uint32_t>& out);

  /// What comes after `now` if it is as large and as far behind it as `now` is behind `before`, as for who computes step after step in a
  /// steady crew; empty: there is no telling.
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
