// Real gradients in virtual time: the numbers of all servers and workers of a simulated cluster, in one thread.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/gradient_source.h"
#include "sim/numbers.h"
#include "store/epochs.h"
#include "store/layout.h"
#include "store/optimizer.h"
#include "store/pull_shadow.h"
#include "store/push_stream.h"
#include "store/replica.h"
#include "store/shard_store.h"

namespace motley::sim {

struct RealNumbersOptions {
  store::Layout layout;
  OptimizerSpec optimizer;
  std::uint64_t parameters{};  // of the layout's values; the rest are statistics
  std::uint64_t epoch_samples{};
  store::Shards shards;      // of the samples, when each worker has its own
  std::uint64_t seed{};      // of the initial model and the epochs' permutations
  bool local_steps = false;  // contributions are model deltas; workers run the optimizer themselves
  double local_momentum = 0.9;
  bool tracks_updates = false;  // see store::LocalModelOptions
  bool control_variate = false;
};

class RealNumbers : public Numbers {
 public:
  RealNumbers(RealNumbersOptions options, GradientSource& source);

  void snapshot(ServerId server, const protocol::Snapshot& wanted) override;
  StepReport compute(const wire::Order& order, std::span<const ArrivedSlice> arrived_slices) override;
  void commit(ServerId server, const wire::Apply& update) override;
  void free(WorkerId worker, Step step) override;
  double alignment(ServerId server, WorkerId worker, Step step) override;
  void forget_sent(ServerId server, WorkerId worker) override { servers_[server.value].forget(worker); }
  void completed(WorkerId worker, Step step) override;
  void forget(WorkerId worker) override;
  std::optional<Evaluation> exported(ServerId server, Version version) override;

  /// The global model as it is now, into `out` (layout.values floats).
  void values(std::span<float> out) const;
  /// Contributions that are neither committed everywhere nor freed nor forgotten.
  [[nodiscard]] std::size_t contributions_held() const { return payloads_.size(); }

 private:
  struct Held {                                 // by one worker
    std::map<Step, std::vector<float>> values;  // by the step that they were pulled for
    std::unique_ptr<store::Replica> replica;
    std::unique_ptr<store::PushStream> push;
    bool forgotten = false;
  };
  struct Payload {
    std::vector<float> values;
    std::uint32_t commits = 0;
    bool complete = false;
  };
  class ArrivedUpdates;
  StepReport contribute(Held& held, const wire::Order& order, std::span<const ArrivedSlice> arrived_slices, std::span<float> out);
  void equip(Held& held) const;
  [[nodiscard]] std::vector<float> take_buffer();
  void code(Held& held, const wire::Order& order, std::vector<float>& values);

  RealNumbersOptions options_;
  GradientSource& source_;
  std::vector<store::ShardStore> servers_;
  std::map<std::pair<ServerId, std::uint32_t>, store::PullShadow> shadows_;  // by server and pull class
  std::vector<float> target_;                                                // scratch
  std::map<WorkerId, Held> held_;
  std::map<std::pair<WorkerId, Step>, Payload> payloads_;
  store::Epochs epochs_;
  struct Export {
    std::vector<float> values;
    std::uint32_t servers = 0;
  };
  std::map<Version, Export> exports_;
  std::vector<std::vector<float>> spare_;  // buffers for reuse
};

}  // namespace motley::sim
