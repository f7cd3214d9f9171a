#include "store/epochs.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"
#include "store/constants.h"

namespace motley::store {
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
  samples_of(lease, samples_);
  return samples_;
}

void Epochs::samples_of(const Lease& lease, std::vector<std::uint32_t>& out) {
  out.clear();
  for (const Range& range : lease.ranges) {
    check(range.last <= epoch_samples_, "a lease lies within its epochs");
    const std::vector<std::uint32_t>& order = permutation_of(range.epoch);
    for (std::uint64_t p = range.first; p < range.last; ++p) out.push_back(order[p]);
  }
}

Lease Epochs::likely_after(const Lease& before, const Lease& now) const {
  const auto place = [&](const Lease& lease) { return lease.ranges.front().epoch * epoch_samples_ + lease.ranges.front().first; };
  Lease next;
  if (before.empty() || now.empty() || before.size() != now.size() || place(now) <= place(before)) return next;
  std::uint64_t at = 2 * place(now) - place(before);
  for (std::uint64_t left = now.size(); left > 0;) {
    const std::uint64_t first = at % epoch_samples_;
    const std::uint64_t here = std::min(left, epoch_samples_ - first);
    next.ranges.push_back({static_cast<std::uint32_t>(at / epoch_samples_), first, first + here});
    at += here;
    left -= here;
  }
  return next;
}

const std::vector<std::uint32_t>& Epochs::permutation_of(std::uint32_t epoch) {
  if (const auto found = permutations_.find(epoch); found != permutations_.end()) return found->second;
  if (permutations_.size() >= cached_permutations) permutations_.erase(permutations_.begin());
  std::vector<std::uint32_t>& order = permutations_[epoch];
  order = permutation(static_cast<std::uint32_t>(epoch_samples_), Rng(seed_, "epoch", epoch));
  if (shards_) {
    check(shards_->size() == epoch_samples_, "every sample has a shard");
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return (*shards_)[a] < (*shards_)[b]; });
  }
  return order;
}

}  // namespace motley::store
