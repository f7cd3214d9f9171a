// Real gradients in virtual time: the numbers of every server and every worker of a simulated cluster, in one process and one thread.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/gradient_source.h"
#include "sim/numbers.h"
#include "store/layout.h"
#include "store/optimizer.h"
#include "store/shard_store.h"

namespace motley::sim {

struct RealNumbersOptions {
  store::Layout layout;
  store::OptimizerSpec optimizer;
  std::uint64_t parameters{};  // of the layout's values; the rest are statistics
  std::uint64_t epoch_samples{};
  std::uint64_t seed{};      // of the initial model and the epochs' permutations
  bool local_steps = false;  // contributions are model deltas; workers run the optimizer themselves
  double local_momentum = 0.9;
};

class RealNumbers : public Numbers {
 public:
  RealNumbers(RealNumbersOptions options, GradientSource& source);

  void snapshot(ServerId server, WorkerId worker, double rho) override;
  Contributed compute(const wire::Order& order) override;
  void commit(ServerId server, const wire::Apply& update) override;
  void free(WorkerId worker, Step step) override;
  void completed(WorkerId worker, Step step) override;
  void forget(WorkerId worker) override;
  std::optional<Evaluation> exported(ServerId server, Version version) override;

  /// The global model as it is now, into `out` (layout.values floats).
  void values(std::span<float> out) const;
  /// Computed, and neither committed everywhere nor freed nor forgotten.
  [[nodiscard]] std::size_t contributions_held() const { return payloads_.size(); }

 private:
  struct Replica {  // what one worker holds
    std::vector<float> values;
    std::unique_ptr<store::Optimizer> optimizer;  // local steps only
    bool forgotten = false;
  };
  struct Payload {
    std::vector<float> values;
    std::uint32_t commits = 0;
    bool complete = false;
  };
  Replica& replica(WorkerId worker);
  [[nodiscard]] std::unique_ptr<store::Optimizer> local_optimizer() const;  // none without local steps
  [[nodiscard]] std::vector<float> take_buffer();
  void gather_samples(const Lease& lease);
  [[nodiscard]] const std::vector<std::uint32_t>& permutation_of(std::uint32_t epoch);
  Loss run_local_steps(Replica& held, const wire::Order& order, std::span<float> delta);

  RealNumbersOptions options_;
  GradientSource& source_;
  std::vector<store::ShardStore> servers_;
  std::map<WorkerId, Replica> replicas_;
  std::map<std::pair<WorkerId, Step>, Payload> payloads_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> permutations_;
  struct Export {
    std::vector<float> values;
    std::uint32_t servers = 0;
  };
  std::map<Version, Export> exports_;
  std::vector<std::vector<float>> spare_;  // buffers for reuse
  std::vector<std::uint32_t> samples_;     // scratch
  std::vector<float> ahead_, gradient_;    // scratch of local steps
};

}  // namespace motley::sim
