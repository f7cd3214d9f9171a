#include "protocol/ledger.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace motley::protocol {

Ledger::Ledger(std::uint64_t epoch_samples, std::uint64_t total, std::uint32_t shards)
    : epoch_samples_(epoch_samples), total_(total), shards_(shards) {
  check(epoch_samples > 0 && shards > 0, "an epoch has samples, in at least one shard");
  if (shards == 1) return;
  if (total > 0) returned_.emplace(0, total);
  frontier_ = total;
}

Lease Ledger::grant(std::uint64_t samples, std::uint32_t shard) {
  Lease lease;
  if (shards_ > 1) grant_own(lease, samples, shard % shards_);
  std::uint64_t wanted = samples - lease.size();
  while (wanted > 0 && !returned_.empty()) {
    const auto from = returned_.begin();
    const std::uint64_t taken = std::min(wanted, from->second - from->first);
    take(lease, from, from->first, from->first + taken);
    wanted -= taken;
  }
  const std::uint64_t fresh = std::min(wanted, total_ - frontier_);
  append(lease, frontier_, frontier_ + fresh);
  frontier_ += fresh;
  leased_ += lease.size();
  return lease;
}

/// Moves positions [first, last) of the free range `from` into the lease.
void Ledger::take(Lease& lease, Positions::iterator from, std::uint64_t first, std::uint64_t last) {
  const auto [begin, end] = *from;
  returned_.erase(from);
  if (begin < first) returned_.emplace(begin, first);
  if (last < end) returned_.emplace(last, end);
  append(lease, first, last);
}

void Ledger::grant_own(Lease& lease, std::uint64_t samples, std::uint32_t shard) {
  const std::uint64_t begins = epoch_samples_ * shard / shards_;
  const std::uint64_t ends = epoch_samples_ * (shard + 1) / shards_;
  for (std::uint64_t epoch = closed_epochs_; epoch * epoch_samples_ < total_; ++epoch) {
    std::uint64_t next = epoch * epoch_samples_ + begins;
    const std::uint64_t last = epoch * epoch_samples_ + ends;
    while (next < last && lease.size() < samples) {
      auto free = returned_.upper_bound(next);
      if (free != returned_.begin() && std::prev(free)->second > next) --free;
      if (free == returned_.end() || free->first >= last) break;
      next = std::max(next, free->first);
      const std::uint64_t end = std::min({last, free->second, next + samples - lease.size()});
      take(lease, free, next, end);
      next = end;
    }
    if (lease.size() == samples) return;
  }
}

/// Converts absolute positions into ranges of their epochs.
void Ledger::append(Lease& lease, std::uint64_t first, std::uint64_t last) const {
  while (first < last) {
    const std::uint64_t epoch = first / epoch_samples_;
    const std::uint64_t end = std::min(last, (epoch + 1) * epoch_samples_);
    lease.ranges.push_back({static_cast<std::uint32_t>(epoch), first - epoch * epoch_samples_, end - epoch * epoch_samples_});
    first = end;
  }
}

void Ledger::count(const Lease& lease) {
  check(!lease.empty(), "a counted lease is not empty");
  for (const Range& r : lease.ranges) insert(done_, r.epoch * epoch_samples_ + r.first, r.epoch * epoch_samples_ + r.last);
  const std::uint64_t size = lease.size();
  check(leased_ >= size, "only leased positions are counted");
  leased_ -= size;
  counted_ += size;
  if (done_.begin()->first == 0) closed_epochs_ = static_cast<std::uint32_t>(done_.begin()->second / epoch_samples_);
}

void Ledger::give_back(const Lease& lease) {
  for (const Range& r : lease.ranges) insert(returned_, r.epoch * epoch_samples_ + r.first, r.epoch * epoch_samples_ + r.last);
  const std::uint64_t size = lease.size();
  check(leased_ >= size, "only leased positions are returned");
  leased_ -= size;
}

void Ledger::insert(Positions& set, std::uint64_t first, std::uint64_t last) {
  auto next = set.lower_bound(first);
  check(next == set.end() || next->first >= last, "a position is counted or returned once");
  if (next != set.begin()) {
    const auto before = std::prev(next);
    check(before->second <= first, "a position is counted or returned once");
    if (before->second == first) {
      first = before->first;
      next = set.erase(before);
    }
  }
  if (next != set.end() && next->first == last) {
    last = next->second;
    set.erase(next);
  }
  set.emplace(first, last);
}

bool Ledger::restore(const Positions& counted) {
  check(leased_ == 0 && counted_ == 0, "a ledger is restored before it has granted positions");
  std::uint64_t end = 0;
  Positions gaps;
  std::uint64_t sum = 0;
  for (const auto& [first, last] : counted) {
    if (first >= last || last > total_ || (end > 0 && first <= end)) return false;
    if (first > end) gaps.emplace(end, first);
    sum += last - first;
    end = last;
  }
  if (shards_ > 1 && end < total_) gaps.emplace(end, total_);
  done_ = counted;
  returned_ = std::move(gaps);
  frontier_ = shards_ > 1 ? total_ : end;
  counted_ = sum;
  if (!done_.empty() && done_.begin()->first == 0) closed_epochs_ = static_cast<std::uint32_t>(done_.begin()->second / epoch_samples_);
  return true;
}

}  // namespace motley::protocol
