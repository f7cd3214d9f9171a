// The crew of a load: who shares the global batch and how many samples one step of each may have. Knows no speed but what newcomers say of
// themselves.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/cost.h"
#include "policy/worker_set.h"

namespace motley::policy {

/// Somebody who comes in.
struct WorkerProfile {
  WorkerId worker;
  std::uint32_t max_batch = 0;       // of one step, by its memory; 0: no limit
  std::uint32_t batch_multiple = 1;  // its steps are best of a multiple of so many samples
  bool shared_memory = false;        // what it pushes and pulls is read where it lies: fewer bits would only cost time
  double samples_per_second = 0;     // as it has just measured, beyond the overhead; 0: it has not
  double overhead_s = 0;             // of a step
  bool bf16_transfer = false;        // what travels in full takes 16 bits a value to it and from it: it computes with no more
  /// Nothing a sample: it has not looked.
  [[nodiscard]] cluster::Affine cost() const { return {overhead_s, samples_per_second > 0 ? 1 / samples_per_second : 0}; }
};

class BatchAllocator {
 public:
  void join(std::span<const WorkerProfile> profiles);
  void leave(WorkerId worker) { worker_set_.leave(worker); }
  /// One step of this worker may have no more than this.
  void restrict(WorkerId worker, std::uint32_t max_batch);
  [[nodiscard]] const std::vector<WorkerId>& workers() const { return worker_set_.workers(); }  // ascending
  /// Position in workers(). Must be present. O(log P).
  [[nodiscard]] std::size_t rank(WorkerId worker) const { return worker_set_.rank(worker); }
  /// Samples that one step of this worker may have; the highest number when nothing limits it.
  [[nodiscard]] std::uint32_t limit(WorkerId worker) const { return limits_[worker.value]; }

  [[nodiscard]] std::uint32_t batch_multiple(WorkerId worker) const { return batch_multiples_[worker.value]; }

  /// By rank: at least 1 each, `total` together while the limits allow, such that `devices` (by rank) finish together, as far as whole
  /// grains let them: who has no grain evens out what the others leave. O(P log P), and O(P^2) when everyone has one.
  [[nodiscard]] std::vector<std::uint32_t> shares(std::uint32_t total, std::span<const cluster::Affine> devices) const;
  /// The same for devices that are all alike: equal to one sample, the first take what division leaves.
  [[nodiscard]] std::vector<std::uint32_t> equal_shares(std::uint32_t total) const;
  /// Before anybody has done a step: by what they have measured of themselves, if all of them have; else equal.
  [[nodiscard]] std::vector<std::uint32_t> first_shares(std::uint32_t total) const;
  /// Somebody has a grain.
  [[nodiscard]] bool has_batch_multiple() const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> whole_multiples(std::uint32_t total, std::span<const cluster::Affine> devices,
                                                           std::vector<std::uint32_t> shares) const;

  WorkerSet worker_set_;
  std::vector<std::uint32_t> limits_;           // by id; who left stays, ids are never used again
  std::vector<std::uint32_t> batch_multiples_;  // the same
  std::vector<cluster::Affine> prior_costs_;    // the same: as they came; nothing a sample: not known
};

}  // namespace motley::policy
