// Load `equal`: everyone gets the same share of the global batch, whatever its speed (to one sample: the first in order take what division
// leaves). Load `fixed`: each worker's batch as the user listed it, in order of joining; who joins beyond the list gets an equal share.
#pragma once
#include <vector>

#include "policy/load.h"

namespace motley::policy {

class LoadEqual : public Load {
 public:
  explicit LoadEqual(std::uint32_t global_batch) : global_batch_(global_batch) {}
  void joined(std::span<const WorkerId> workers) override {
    for (const WorkerId worker : workers) roster_.join(worker);
  }
  void left(WorkerId worker) override { roster_.leave(worker); }
  void updated(const Monitor&) override {}
  [[nodiscard]] std::uint32_t batch(WorkerId worker) const override;

 private:
  std::uint32_t global_batch_;
  Roster roster_;
};

class LoadFixed : public Load {
 public:
  LoadFixed(std::uint32_t global_batch, std::vector<std::uint32_t> batches) : equal_(global_batch), batches_(std::move(batches)) {}
  void joined(std::span<const WorkerId> workers) override { equal_.joined(workers); }
  void left(WorkerId worker) override { equal_.left(worker); }
  void updated(const Monitor&) override {}
  [[nodiscard]] std::uint32_t batch(WorkerId worker) const override {
    return worker.value < batches_.size() ? batches_[worker.value] : equal_.batch(worker);
  }

 private:
  LoadEqual equal_;
  std::vector<std::uint32_t> batches_;
};

}  // namespace motley::policy
