// What the payload handles of the machines stand for: parameters, contributions, evaluations. `NoNumbers` is a world of time and versions
// alone.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"
#include "base/step_report.h"
#include "protocol/shard.h"
#include "wire/message.h"

namespace motley::sim {

/// A slice of newer parameters that came while a round was computed, to be taken in when so many of its local steps are done.
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
  /// This server's slices, as they are now, become part of what the worker will compute on.
  virtual void snapshot(ServerId server, const protocol::Snapshot& snapshot) = 0;
  /// Computes the order's lease on what was snapshotted for its worker, and on what landed meanwhile; keeps the contribution until
  /// committed everywhere, freed or forgotten. The report has no times.
  virtual StepReport compute(const wire::Order& order, std::span<const ArrivedSlice> arrived_slices) = 0;
  virtual void commit(ServerId server, const wire::Apply& update) = 0;
  virtual void free(WorkerId worker, Step step) = 0;
  /// How far a contribution goes the way of this server's momentum.
  virtual double alignment(ServerId server, WorkerId worker, Step step) = 0;
  /// What this worker was sent is needed for nothing any more.
  virtual void forget_sent(ServerId server, WorkerId worker) = 0;
  /// The contribution is complete: it outlives its worker.
  virtual void completed(WorkerId worker, Step step) = 0;
  /// The worker is gone: its parameters and whatever is not complete go too.
  virtual void forget(WorkerId worker) = 0;
  /// This server's parameters of `version` are ready; answers when the last server's are.
  virtual std::optional<Evaluation> exported(ServerId server, Version version) = 0;
};

/// Time and versions only; `servers` of them export each evaluated version.
class NoNumbers : public Numbers {
 public:
  void snapshot(ServerId, const protocol::Snapshot&) override {}
  StepReport compute(const wire::Order&, std::span<const ArrivedSlice>) override { return {}; }
  void commit(ServerId, const wire::Apply&) override {}
  void free(WorkerId, Step) override {}
  double alignment(ServerId, WorkerId, Step step) override { return step.value % 2 == 0 ? 1 : -1; }  // both happen
  void forget_sent(ServerId, WorkerId) override {}
  void completed(WorkerId, Step) override {}
  void forget(WorkerId) override {}
  std::optional<Evaluation> exported(ServerId server, Version) override {
    return server == ServerId{0} ? std::optional<Evaluation>(Evaluation{}) : std::nullopt;
  }
};

}  // namespace motley::sim
