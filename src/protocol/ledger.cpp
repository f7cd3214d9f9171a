#include "protocol/ledger.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace motley::protocol {

Ledger::Ledger(std::uint64_t epoch_samples, std::uint64_t total) : epoch_samples_(epoch_samples), total_(total) {
  check(epoch_samples > 0, "an epoch has samples");
}

Lease Ledger::grant(std::uint64_t samples) {
  Lease lease;
  std::uint64_t wanted = samples;
  while (wanted > 0 && !returned_.empty()) {
    const auto [first, last] = *returned_.begin();
    const std::uint64_t taken = std::min(wanted, last - first);
    returned_.erase(returned_.begin());
    if (first + taken < last) returned_.emplace(first + taken, last);
    append(lease, first, first + taken);
    wanted -= taken;
  }
  const std::uint64_t fresh = std::min(wanted, total_ - frontier_);
  append(lease, frontier_, frontier_ + fresh);
  frontier_ += fresh;
  leased_ += lease.size();
  return lease;
}

/// Absolute positions become ranges of their epochs.
void Ledger::append(Lease& lease, std::uint64_t first, std::uint64_t last) const {
  while (first < last) {
    const std::uint64_t epoch = first / epoch_samples_;
    const std::uint64_t end = std::min(last, (epoch + 1) * epoch_samples_);
    lease.ranges.push_back({static_cast<std::uint32_t>(epoch), first - epoch * epoch_samples_, end - epoch * epoch_samples_});
    first = end;
  }
}

void Ledger::count(const Lease& lease) {
  check(!lease.empty(), "what is counted holds samples");
  for (const Range& r : lease.ranges) insert(done_, r.epoch * epoch_samples_ + r.first, r.epoch * epoch_samples_ + r.last);
  const std::uint64_t size = lease.size();
  check(leased_ >= size, "only what was leased is counted");
  leased_ -= size;
  counted_ += size;
  if (done_.begin()->first == 0) closed_epochs_ = static_cast<std::uint32_t>(done_.begin()->second / epoch_samples_);
}

void Ledger::give_back(const Lease& lease) {
  for (const Range& r : lease.ranges) insert(returned_, r.epoch * epoch_samples_ + r.first, r.epoch * epoch_samples_ + r.last);
  const std::uint64_t size = lease.size();
  check(leased_ >= size, "only what was leased is given back");
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
  check(frontier_ == 0, "a ledger goes on before it has granted anything");
  std::uint64_t end = 0;
  Positions gaps;
  std::uint64_t sum = 0;
  for (const auto& [first, last] : counted) {
    if (first >= last || last > total_ || (end > 0 && first <= end)) return false;
    if (first > end) gaps.emplace(end, first);
    sum += last - first;
    end = last;
  }
  done_ = counted;
  returned_ = std::move(gaps);
  frontier_ = end;
  counted_ = sum;
  if (!done_.empty() && done_.begin()->first == 0) closed_epochs_ = static_cast<std::uint32_t>(done_.begin()->second / epoch_samples_);
  return true;
}

}  // namespace motley::protocol
