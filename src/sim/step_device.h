// The device of one simulated node: the step that it computes, and the slices that have arrived for it. Pure: the simulator passes times in
// and asks when to look again.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/device.h"
#include "cluster/spec.h"
#include "sim/numbers.h"
#include "sim/streaming.h"
#include "wire/message.h"

namespace motley::sim {

class StepDevice {
 public:
  /// `streamed`: when steps read and produce their slices; null when they begin with the last slice and produce all at their end. Keeps it.
  /// `slices`: of the model.
  StepDevice(const cluster::Spec& cluster, NodeId node, std::uint64_t seed, std::size_t slices, const LayerSequence* streamed)
      : device_(cluster, node, seed), slices_(slices), streamed_(streamed) {}

  /// When the simulator has to look at the device again: at the end of the step, or to call advance().
  struct Due {
    Instant when{};
    bool ends = false;
  };
  /// Begins a step; it may compute fewer samples than are ordered, see cluster::Device::work.
  Due begin(Instant now, const wire::Order& order);
  /// With streamed parameters: goes on as far as the arrived slices allow and appends the slices whose gradients are ready. None: when
  /// another slice arrives.
  std::optional<Due> advance(Instant now, std::vector<SliceId>& gradients);
  /// A slice of parameters for this or a later step has arrived.
  void slice_arrived(Instant now, const wire::Pulled& slice);

  struct FinishedStep {
    wire::Order order;  // with the lease of the samples that were computed
    std::vector<ArrivedSlice> arrived_slices;
    Duration compute{};  // without stalls
    Duration stalled{};
    bool new_batch_size = false;
  };
  /// Must be computing.
  FinishedStep end(Instant now);
  void abandon() { running_.reset(); }
  /// The process has died: nothing of it is left.
  void reset();

  [[nodiscard]] bool computes(std::uint32_t serial) const { return running_ && serial_ == serial; }
  [[nodiscard]] std::uint32_t serial() const { return serial_; }
  [[nodiscard]] Step step() const { return running_->order.step; }
  [[nodiscard]] bool is_stalled() const { return running_ && running_->streaming && running_->streaming->is_stalled(); }
  [[nodiscard]] Instant hangs_until(Instant now) const { return device_.hangs_until(now); }

 private:
  struct Running {
    wire::Order order;
    Instant began{};
    Instant ends{};
    std::vector<ArrivedSlice> arrived_slices;  // of newer parameters, during local steps
    std::optional<Streaming> streaming;
    bool new_batch_size = false;
  };
  using PullKey = std::pair<WorkerId, Step>;

  cluster::Device device_;
  std::size_t slices_;
  const LayerSequence* streamed_;
  std::optional<Running> running_;
  std::uint32_t serial_ = 0;                      // of the newest step
  std::map<PullKey, std::vector<bool>> arrived_;  // by slice, of pulls that may still be needed; with streamed parameters only
};

}  // namespace motley::sim
