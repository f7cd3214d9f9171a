// The ledger: every sample of every epoch counts exactly once, even if workers die.
// Each epoch is a permutation of the data set; the ledger only deals with its positions. A position is free, leased or counted. Free
// positions are granted in order, returned ones first; a lease ends counted or returned. The next epoch begins when the positions of the
// last are exhausted, without waiting.
#pragma once
#include <cstdint>
#include <map>

#include "base/lease.h"

namespace motley::protocol {

class Ledger {
 public:
  /// `total` positions in all, in epochs of `epoch_samples` (the last one may be shorter). Each epoch is divided into `shards` equal parts.
  Ledger(std::uint64_t epoch_samples, std::uint64_t total, std::uint32_t shards = 1);

  /// Up to `samples` positions; fewer when fewer are free, empty when none is. With several shards, those of this shard first, epoch by
  /// epoch, then those of others. O(log n) per range, with shards also per open epoch.
  [[nodiscard]] Lease grant(std::uint64_t samples, std::uint32_t shard = 0);
  /// The lease's positions are included in the model. Counting a position twice is a bug.
  void count(const Lease& lease);
  /// The lease's positions are free again.
  void give_back(const Lease& lease);

  [[nodiscard]] std::uint64_t counted() const { return counted_; }
  [[nodiscard]] std::uint64_t leased() const { return leased_; }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] bool complete() const { return counted_ == total_; }
  /// Epochs of which every position is counted.
  [[nodiscard]] std::uint32_t closed_epochs() const { return closed_epochs_; }

  /// The counted positions, as absolute ranges [first, last), ascending. Enough for a checkpoint: positions that are leased then are free
  /// after it.
  using Positions = std::map<std::uint64_t, std::uint64_t>;  // first -> last, disjoint, not touching
  [[nodiscard]] const Positions& counted_positions() const { return done_; }
  /// Continues from these positions, before any grant. False, without a change, when the ranges are invalid or lie beyond the end.
  [[nodiscard]] bool restore(const Positions& counted);

 private:
  void take(Lease& lease, Positions::iterator from, std::uint64_t first, std::uint64_t last);
  void grant_own(Lease& lease, std::uint64_t samples, std::uint32_t shard);
  static void insert(Positions& set, std::uint64_t first, std::uint64_t last);
  void append(Lease& lease, std::uint64_t first, std::uint64_t last) const;

  std::uint64_t epoch_samples_;
  std::uint64_t total_;
  std::uint32_t shards_;
  std::uint64_t frontier_ = 0;  // every position below it has been granted at least once
  Positions returned_;          // with several shards: all free positions
  Positions done_;              // counted
  std::uint64_t counted_ = 0;
  std::uint64_t leased_ = 0;
  std::uint32_t closed_epochs_ = 0;
};

}  // namespace motley::protocol
