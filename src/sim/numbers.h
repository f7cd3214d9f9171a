// The numbers behind the ids of the state machines: parameters, contributions, evaluations. `NoNumbers` is for simulations of times and
// versions only.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"
#include "base/step_report.h"
#include "protocol/shard.h"
#include "wire/message.h"

namespace motley::sim {

/// A slice of newer parameters that arrived during a round; it is merged when `after` of the round's local steps are done.
struct ArrivedSlice {
  SliceId slice;
  std::uint32_t after = 0;
};

struct Evaluation {
  double accuracy = 0;
  double loss = 0;
};

class Numbers {
 public:
  virtual ~Numbers() = default;
  /// Copies this server's slices, as they are now, for the worker's next step.
  virtual void snapshot(ServerId server, const protocol::Snapshot& snapshot) = 0;
  /// Computes the order's lease on the worker's snapshot and on slices that arrived meanwhile; keeps the contribution until it is committed
  /// everywhere, freed or forgotten. The report has no times.
  virtual StepReport compute(const wire::Order& order, std::span<const ArrivedSlice> arrived_slices) = 0;
  virtual void commit(ServerId server, const wire::Apply& update) = 0;
  virtual void free(WorkerId worker, Step step) = 0;
  /// The alignment of a contribution with this server's momentum.
  virtual double alignment(ServerId server, WorkerId worker, Step step) = 0;
  /// The shadow copy of the values sent to this worker is no longer needed.
  virtual void forget_sent(ServerId server, WorkerId worker) = 0;
  /// The contribution is complete: it outlives its worker.
  virtual void completed(WorkerId worker, Step step) = 0;
  /// The worker left: drops its parameters and its incomplete contributions.
  virtual void forget(WorkerId worker) = 0;
  /// This server's parameters of `version` are ready; returns the evaluation once all servers' are.
  virtual std::optional<Evaluation> exported(ServerId server, Version version) = 0;
};

/// For simulations of times and versions only.
class NoNumbers : public Numbers {
 public:
  void snapshot(ServerId, const protocol::Snapshot&) override {}
  StepReport compute(const wire::Order&, std::span<const ArrivedSlice>) override { return {}; }
  void commit(ServerId, const wire::Apply&) override {}
  void free(WorkerId, Step) override {}
  double alignment(ServerId, WorkerId, Step step) override { return step.value % 2 == 0 ? 1 : -1; }  // both outcomes of the test occur
  void forget_sent(ServerId, WorkerId) override {}
  void completed(WorkerId, Step) override {}
  void forget(WorkerId) override {}
  std::optional<Evaluation> exported(ServerId server, Version) override {
    return server == ServerId{0} ? std::optional<Evaluation>(Evaluation{}) : std::nullopt;
  }
};

}  // namespace motley::sim
