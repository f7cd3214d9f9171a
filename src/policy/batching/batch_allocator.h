// Divides the global batch among the workers of a batching policy, within the limits of their memory and their batch multiples. It knows
// no measured speed, only the profiles that workers report when they join.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/cost.h"
#include "policy/worker_profile.h"
#include "policy/worker_set.h"

namespace motley::policy {

class BatchAllocator {
 public:
  void join(std::span<const WorkerProfile> profiles);
  void leave(WorkerId worker) { worker_set_.leave(worker); }
  /// One step of this worker may have at most this many samples.
  void restrict(WorkerId worker, std::uint32_t max_batch);
  [[nodiscard]] const std::vector<WorkerId>& workers() const { return worker_set_.workers(); }  // ascending
  /// Position in workers(). The worker must be present. O(log P).
  [[nodiscard]] std::size_t rank(WorkerId worker) const { return worker_set_.rank(worker); }
  /// Samples that one step of this worker may have; the highest number when nothing limits it.
  [[nodiscard]] std::uint32_t limit(WorkerId worker) const { return devices_[worker.value].max_batch; }

  [[nodiscard]] std::uint32_t batch_multiple(WorkerId worker) const { return devices_[worker.value].batch_multiple; }

  /// By rank: at least 1 each, `total` together while the limits allow, such that `devices` (by rank) finish together as far as batch
  /// multiples allow: workers without one even out the remainder. O(P log P), and O(P^2) when every worker has one.
  [[nodiscard]] std::vector<std::uint32_t> shares(std::uint32_t total, std::span<const cluster::Affine> devices) const;
  /// The same for equal devices: equal to one sample, the first workers take the remainder.
  [[nodiscard]] std::vector<std::uint32_t> equal_shares(std::uint32_t total) const;
  /// Before the first steps: by the costs that the devices have measured themselves, or equal if one has not.
  [[nodiscard]] std::vector<std::uint32_t> first_shares(std::uint32_t total) const;
  /// Some worker has a batch multiple above 1.
  [[nodiscard]] bool has_batch_multiple() const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> whole_multiples(std::uint32_t total, std::span<const cluster::Affine> devices,
                                                           std::vector<std::uint32_t> shares) const;

  WorkerSet worker_set_;
  std::vector<cluster::DeviceProfile> devices_;  // by id; ids are never reused. Here max_batch is the highest number when there is no limit
};

}  // namespace motley::policy
