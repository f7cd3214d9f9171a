// A simulated cluster: the real chief, shard and worker machines, driven by a virtual clock over a modelled network and modelled devices.
// It turns the crank and holds no decision. Same options, strategy and seed: the same trace, byte for byte.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "cluster/device.h"
#include "cluster/spec.h"
#include "policy/lr_schedule.h"
#include "policy/strategy.h"
#include "protocol/chief.h"
#include "protocol/shard.h"
#include "protocol/training_outcome.h"
#include "protocol/worker.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/numbers.h"
#include "sim/streaming.h"
#include "store/layer_timing.h"
#include "store/layout.h"
#include "trace/event.h"

namespace motley::sim {

struct WorldOptions {
  cluster::Spec cluster;
  protocol::ChiefOptions chief;
  store::Layout layout;
  store::LayerTiming layer_timing;       // empty: devices begin when the last slice is here and push when they are done
  std::vector<std::uint32_t> max_batch;  // of one step, by node, 0 for no limit; empty: nobody has one
  std::vector<bool> bf16_transfer;  // by node: it computes with weights of 16 bits, and no more travel to it and from it; empty: nobody
  std::uint64_t seed = 0;
  std::function<void(std::uint32_t node, wire::Contributed& reported)>
      claims;  // what a node says of a step instead of the truth; empty: the truth
  std::optional<std::uint64_t>
      max_events;  // of the virtual clock; a world that needs more is our bug (nothing in it should go round for ever)
};

using TrainingOutcome = protocol::TrainingOutcome;

class World {
 public:
  /// Keeps references to `numbers` and `trace`.
  World(const WorldOptions& options, policy::Strategy strategy, const policy::LrSchedule& schedule, Numbers& numbers, trace::Sink& trace);

  /// Turns the crank until training ends. Once.
  TrainingOutcome run();

 private:
  // What the clock can bring.
  struct Control {  // a control message arrives
    std::uint32_t control_message;
  };
  struct EgressFree {
    std::uint32_t egress;
  };
  struct BulkMessageReaches {
    std::uint32_t bulk_message;
  };
  struct BulkMessageArrives {
    std::uint32_t bulk_message;
  };
  struct ComputeEnds {
    std::uint32_t node;
    std::uint32_t serial;
  };
  struct SlicesDue {  // a device that streams reads or makes some
    std::uint32_t node;
    std::uint32_t serial;
  };
  struct WorkerTick {
    std::uint32_t connection;
  };
  struct ChiefTick {};
  struct TimeIsUp {};
  struct FaultInjected {
    std::uint32_t index;
  };
  struct PauseEnds {
    std::uint32_t node;
  };
  struct LossNoticed {  // the chief's side of a connection has broken
    std::uint32_t connection;
  };
  struct DeviceMoves {  // after it was told to stop
    std::uint32_t connection;
  };
  using What = std::variant<Control, EgressFree, BulkMessageReaches, BulkMessageArrives, ComputeEnds, SlicesDue, WorkerTick, ChiefTick,
                            TimeIsUp, FaultInjected, PauseEnds, LossNoticed, DeviceMoves>;

  struct ControlMessage {
    protocol::Peer from;
    protocol::Peer to;
    std::uint32_t connection;  // if a worker writes or reads it
    wire::Message message;
  };
  struct Running {  // what a node computes
    wire::Order order;
    Instant began;
    Instant ends{};
    std::vector<ArrivedSlice> arrived_slices;  // of newer parameters, while it takes local steps
    std::optional<Streaming> streaming;
    bool first_of_size = false;
  };
  struct Node {
    std::optional<protocol::Worker> machine;  // absent: nobody home
    std::uint32_t connection = 0;             // of this life of the machine
    std::uint32_t serial = 0;                 // grows with each computation
    std::optional<Running> running;
    bool paused = false;
    Instant paused_until{};
    std::deque<What> missed;  // what came in while paused
    using PullKey = std::pair<WorkerId, Step>;
    std::map<PullKey, std::vector<bool>> here;  // of the parameters that may still be needed, by slice; only when devices stream
  };
  /// One life of one node's machine. What is sent on it after that life reaches nobody.
  struct Connection {
    std::uint32_t node = 0;
    std::optional<WorkerId> member;  // as the chief knows it
  };

  void happen(const What& what);
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
  void slice_arrived(std::uint32_t n, const wire::Pulled& slice);
  void begin_compute(std::uint32_t node, const wire::Order& order);
  void end_compute(std::uint32_t node);
  void advance_streaming(std::uint32_t node);

  void send_from_chief(const protocol::Send& send);
  void send_from_server(std::uint32_t server, const protocol::Send& send);
  void send_from_worker(std::uint32_t node, const protocol::Send& send);
  [[nodiscard]] std::uint64_t bytes_of(SliceId slice, std::uint8_t bits);
  void post(ControlMessage control_message, Port from, Port to);
  void evaluated(Version version, const Evaluation& evaluation);
  void model_not_finite();
  void tell(const trace::EventData& event);

  WorldOptions options_;
  Numbers& numbers_;
  trace::Sink& trace_;
  EventQueue<What> queue_;
  Instant now_{};
  Network network_;
  std::vector<cluster::Device> devices_;
  protocol::Chief chief_;
  std::vector<protocol::Shard> shards_;
  std::vector<Node> nodes_;
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> connection_of_worker_;  // by WorkerId
  std::optional<LayerSequence> layer_sequence_;      // absent: nobody streams
  std::vector<ControlMessage> control_messages_;
  std::vector<std::uint32_t> unused_control_messages_;
  std::map<Version, std::uint64_t> evaluations_;                    // asked for, not yet done: samples counted then
  std::map<std::uint8_t, std::vector<std::uint64_t>> slice_bytes_;  // by bits per value, then by slice
  bool started_ = false;                                            // the first order is out
  bool ended_ = false;
  TrainingOutcome outcome_;
  // Scratch of tell_*; a machine is never told anything while its answers are being carried out.
  protocol::ChiefActions chief_actions_;
  protocol::ShardActions shard_actions_;
  protocol::WorkerActions worker_actions_;
};

}  // namespace motley::sim
