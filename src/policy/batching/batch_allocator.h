// The crew of a load: who shares the global batch and how many samples one step of each may have. Knows no speed but what newcomers say of
// themselves.
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
  /// One step of this worker may have no more than this.
  void restrict(WorkerId worker, std::uint32_t max_batch);
  [[nodiscard]] const std::vector<WorkerId>& workers() const { return worker_set_.workers(); }  // ascending
  /// Position in workers(). Must be present. O(log P).
  [[nodiscard]] std::size_t rank(WorkerId worker) const { return worker_set_.rank(worker); }
  /// Samples that one step of this worker may have; the highest number when nothing limits it.
  [[nodiscard]] std::uint32_t limit(WorkerId worker) const { return devices_[worker.value].max_batch; }

  [[nodiscard]] std::uint32_t batch_multiple(WorkerId worker) const { return devices_[worker.value].batch_multiple; }

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
  std::vector<cluster::DeviceProfile> devices_;  // by id; ids are never reused. Here max_batch is the highest number when there is no limit
};

}  // namespace motley::policy
