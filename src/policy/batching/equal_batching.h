// Batching `equal`: every worker gets the same share of the global batch, whatever its speed (to one sample: the first in order take the
// remainder); what one worker's memory cannot hold goes to the others. Batching `fixed`: each worker's batch as the user listed it, in
// order of joining, cut to its memory; workers beyond the list get an equal share.
// Cost: O(P log P) with the first order after a change of membership, then O(log P) per order.
#pragma once
#include <algorithm>
#include <vector>

#include "policy/batching/batching_policy.h"

namespace motley::policy {

class EqualBatching : public BatchingPolicy {
 public:
  explicit EqualBatching(std::uint32_t global_batch) : global_batch_(global_batch) {}
  void joined(std::span<const WorkerProfile> profiles) override {
    allocator_.join(profiles);
    plan_.clear();
  }
  void left(WorkerId worker) override {
    allocator_.leave(worker);
    plan_.clear();
  }
  void restricted(WorkerId worker, std::uint32_t max_batch) override {
    allocator_.restrict(worker, max_batch);
    plan_.clear();
  }
  void updated(const Monitor&, const Exposed&) override {}
  [[nodiscard]] std::uint32_t batch(WorkerId worker) const override;
  [[nodiscard]] std::uint32_t limit(WorkerId worker) const { return allocator_.limit(worker); }

 private:
  std::uint32_t global_batch_;
  BatchAllocator allocator_;
  mutable std::vector<std::uint32_t> plan_;  // by rank; made on demand
};

class FixedBatching : public BatchingPolicy {
 public:
  FixedBatching(std::uint32_t global_batch, std::vector<std::uint32_t> batches) : equal_(global_batch), batches_(std::move(batches)) {}
  void joined(std::span<const WorkerProfile> profiles) override { equal_.joined(profiles); }
  void left(WorkerId worker) override { equal_.left(worker); }
  void restricted(WorkerId worker, std::uint32_t max_batch) override { equal_.restricted(worker, max_batch); }
  void updated(const Monitor&, const Exposed&) override {}
  [[nodiscard]] std::uint32_t batch(WorkerId worker) const override {
    return worker.value < batches_.size() ? std::min(batches_[worker.value], equal_.limit(worker)) : equal_.batch(worker);
  }

 private:
  EqualBatching equal_;
  std::vector<std::uint32_t> batches_;
};

}  // namespace motley::policy
