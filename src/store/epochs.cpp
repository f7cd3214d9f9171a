#include "store/epochs.h"

#include "base/check.h"
#include "base/rng.h"

namespace motley::store {
namespace {

constexpr std::size_t kept = 4;  // workers are at most an epoch or two apart

}  // namespace

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
  return permutations_[epoch] = permutation(static_cast<std::uint32_t>(epoch_samples_), Rng(seed_, "epoch", epoch));
}

}  // namespace motley::store
