#include "store/epochs.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"

namespace motley::store {
namespace {

constexpr std::size_t kept = 4;  // workers are at most an epoch or two apart; with shards of unlike speed more, which costs time only

}  // namespace

std::vector<std::uint32_t> shards_by(const std::vector<std::uint32_t>& labels, std::uint64_t shards) {
  std::vector<std::uint32_t> by_label(labels.size());
  std::iota(by_label.begin(), by_label.end(), 0U);
  std::stable_sort(by_label.begin(), by_label.end(), [&](std::uint32_t a, std::uint32_t b) { return labels[a] < labels[b]; });
  std::vector<std::uint32_t> shard_of(labels.size());
  for (std::uint64_t shard = 0; shard < shards; ++shard)
    for (std::uint64_t place = labels.size() * shard / shards; place < labels.size() * (shard + 1) / shards; ++place)
      shard_of[by_label[place]] = static_cast<std::uint32_t>(shard);
  return shard_of;
}

const std::vector<std::uint32_t>& Epochs::samples_of(const Lease& lease) {
  samples_.clear();
  for (const Range& range : lease.ranges) {
    check(range.last <= epoch_samples_, "a lease lies within its epochs");
    const std::vector<std::uint32_t>& order = permutation_of(range.epoch);
    for (std::uint64_t p = range.first; p < range.last; ++p) samples_.push_back(order[p]);
  }
  return samples_;
}

const std::vector<std::uint32_t>& Epochs::permutation_of(std::uint32_t epoch) {
  if (const auto found = permutations_.find(epoch); found != permutations_.end()) return found->second;
  if (permutations_.size() >= kept) permutations_.erase(permutations_.begin());
  std::vector<std::uint32_t>& order = permutations_[epoch];
  order = permutation(static_cast<std::uint32_t>(epoch_samples_), Rng(seed_, "epoch", epoch));
  if (shards_) {
    check(shards_->size() == epoch_samples_, "every sample has a shard");
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return (*shards_)[a] < (*shards_)[b]; });
  }
  return order;
}

}  // namespace motley::store
