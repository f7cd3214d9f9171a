// A simulated cluster: the state machines of chief, servers and workers, driven by an event queue in virtual time over a modelled network
// and modelled devices. It holds no decision. Equal options, strategy and seed give the same trace, byte for byte.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "cluster/spec.h"
#include "policy/lr_schedule.h"
#include "policy/strategy.h"
#include "protocol/chief.h"
#include "protocol/shard.h"
#include "protocol/training_outcome.h"
#include "protocol/worker.h"
#include "sim/connections.h"
#include "sim/event_queue.h"
#include "sim/numbers.h"
#include "sim/step_device.h"
#include "sim/streaming.h"
#include "sim/transfers.h"
#include "sim/world_events.h"
#include "store/layer_timing.h"
#include "store/layout.h"
#include "trace/event.h"

namespace motley::sim {

struct WorldOptions {
  cluster::Spec cluster;
  protocol::ChiefOptions chief;
  store::Layout layout;
  store::LayerTiming layer_timing;       // empty: steps begin when the last slice has arrived and push all slices at their end
  std::vector<std::uint32_t> max_batch;  // of one step, by node, 0 for no limit; empty: no node has one
  std::vector<bool> bf16_transfer;       // by node: parameters and gradients are sent as bf16 at most; empty: for no node
  std::uint64_t seed = 0;
  /// Changes what a node reports of a step, for tests of false reports; empty: reports stay true.
  std::function<void(std::uint32_t node, wire::Contributed& reported)> claims;
  std::optional<std::uint64_t> max_events;  // a simulation with more events never ends: an error
};

using TrainingOutcome = protocol::TrainingOutcome;

class World {
 public:
  /// Keeps references to `numbers` and `trace`.
  World(const WorldOptions& options, policy::Strategy strategy, const policy::LrSchedule& schedule, Numbers& numbers, trace::Sink& trace);

  /// Simulates until training ends. To be called once.
  TrainingOutcome run();

 private:
  struct Node {
    StepDevice device;
    std::optional<protocol::Worker> machine{};  // none: no process runs there
    std::uint32_t connection = 0;               // of the newest machine
    bool paused = false;
    Instant paused_until{};
    std::deque<WorldEvent> missed{};  // events during the pause
  };

  void happen(const WorldEvent& event);
  void compute_ends(const ComputeEnds& event);
  void slices_due(const SlicesDue& event);
  void device_moves(const DeviceMoves& event);
  void worker_tick(const WorkerTick& event);
  void loss_noticed(const LossNoticed& event);
  void pause_ends(std::uint32_t node);
  void start_node(std::uint32_t node);
  void stop_node(std::uint32_t node);
  void inject_fault(std::uint32_t index);
  [[nodiscard]] bool alive(std::uint32_t connection) const;
  void deliver(const ControlMessage& control_message);
  void deliver(const BulkMessage& bulk_message);

  void tell_chief(const protocol::ChiefEvent& event);
  void tell_shard(std::uint32_t server, const wire::Message& message);
  void tell_worker(std::uint32_t node, const protocol::WorkerEvent& event);
  void carry_out(const protocol::ChiefAction& action);
  void carry_out(std::uint32_t server, const protocol::ShardAction& action);
  void carry_out(std::uint32_t node, const protocol::WorkerAction& action);
  void begin_compute(std::uint32_t node, const wire::Order& order);
  void end_compute(std::uint32_t node);
  void advance_streaming(std::uint32_t node);
  void look_again(std::uint32_t node, const StepDevice::Due& due);

  void send_from_chief(const protocol::Send& send);
  void send_from_server(std::uint32_t server, const protocol::Send& send);
  void send_from_worker(std::uint32_t node, const protocol::Send& send);
  void evaluated(Version version, const Evaluation& evaluation);
  void model_not_finite();
  void finished(protocol::EndReason why);
  void record(const trace::EventData& event) { trace_.on_event({now_, event}); }

  WorldOptions options_;
  Numbers& numbers_;
  trace::Sink& trace_;
  EventQueue<WorldEvent> queue_;
  Instant now_{};
  Transfers transfers_;
  protocol::Chief chief_;
  std::vector<protocol::Shard> shards_;
  std::optional<LayerSequence> layer_sequence_;  // with streamed parameters
  std::vector<Node> nodes_;
  Connections connections_;
  std::map<Version, std::uint64_t> evaluations_;  // requested, by version: samples counted then
  bool started_ = false;                          // the first order was sent
  bool ended_ = false;
  TrainingOutcome outcome_;
  // Buffers of tell_*(): a machine receives no event while its actions are carried out.
  protocol::ChiefActions chief_actions_;
  protocol::ShardActions shard_actions_;
  protocol::WorkerActions worker_actions_;
};

}  // namespace motley::sim
