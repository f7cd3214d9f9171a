// A worker: waits for an order and the parameters it is to be computed on, computes, pushes, and goes on with the next order, if it has one
// already: then parameters and contributions travel while it computes. It knows which slices there are and on which server each lives; the
// numbers themselves stay with the driver.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/step_report.h"
#include "base/time.h"
#include "protocol/peers.h"

namespace motley::protocol {

struct WorkerOptions {
  std::string node;
  std::vector<ServerId> servers_of_slices;  // by SliceId
  Duration heartbeat = from_seconds(1);
  Duration patience = from_seconds(5);             // an unanswered Hello is repeated after this
  bool start_early = false;                        // compute when the first slice is here, not the last: the device waits for what it needs
  std::uint32_t node_index = wire::no_node_index;  // of the node in the job's list of nodes
  cluster::DeviceProfile profile{};
};

// What a worker hears --------------------------------------------------------------------------------------------------------------

struct Started {};
struct Arrived {
  wire::Message message;
};
/// The device has this slice of the contribution ready; it may leave before the rest.
struct Produced {
  Step step;
  SliceId slice;
};
/// The device is done with this step. The machine fills in the local steps and the pull time; 0 samples: all that were ordered.
struct Computed {
  Step step;
  StepReport report{};
};
struct TimePassed {};
/// The device has let go of everything that was abandoned.
struct DeviceFree {};
/// The user or the scheduler wants this worker gone.
struct AskedToLeave {};
using WorkerEvent = std::variant<Started, Arrived, Produced, Computed, TimePassed, AskedToLeave, DeviceFree>;

// What a worker answers --------------------------------------------------------------------------------------------------------------

/// Compute this order at `base`, then report Computed. Replaces whatever was being computed.
struct Compute {
  wire::Order order;
  Version base;
};
/// Stop computing, if it is; no Computed is wanted.
struct Abandon {};
/// Say DeviceFree as soon as that is so. A device that hangs would only hang again in the next order, so nobody asks for one before.
struct AwaitDevice {};
/// It is over: this machine will say nothing more.
struct Quit {};
using WorkerAction = std::variant<Send, Compute, Abandon, Quit, AwaitDevice>;
using WorkerActions = std::vector<WorkerAction>;  // carry out in order

class Worker {
 public:
  explicit Worker(WorkerOptions options);

  /// Total: whatever is not meant for what it is now changes nothing.
  void step(Instant now, const WorkerEvent& event, WorkerActions& out);

  [[nodiscard]] std::optional<WorkerId> id() const { return id_; }
  /// Orders that it has not begun.
  [[nodiscard]] std::size_t waiting() const { return orders_.size(); }
  /// While it computes: what it will compute next, as soon as it could begin. Null: not yet. Good until the next step().
  [[nodiscard]] const wire::Order* next_step() const;

 private:
  struct Outside {};   // no member: has said Hello, or will
  struct Stopping {};  // no member: will say Hello when its device has let go of what it computed
  struct Waiting {};
  struct Computing {
    wire::Order order;
    Version base;
    Instant ordered{};
    std::vector<bool> pushed{};  // by SliceId; empty: none yet
  };
  struct Over {};
  /// Slices that are coming in for one step of one membership. They have their own lanes, so they may be here before the order, and the
  /// first ones even before the Welcome.
  struct Pulling {
    Version base;
    std::size_t slices = 0;             // of them here
    std::optional<Instant> last_slice;  // when the last one came
  };
  /// What is to be done, and when that was said.
  struct Ordered {
    wire::Order order;
    Instant at;
  };

  [[nodiscard]] bool stopping() const { return std::holds_alternative<Stopping>(state_); }
  void say_hello(Instant now, WorkerActions& out);
  void arrived(Instant now, const wire::Message& message, WorkerActions& out);
  void cancelled(Instant now, Step step, WorkerActions& out);
  void pulled(Instant now, const wire::Pulled& slice, WorkerActions& out);
  void compute_if_ready(Instant now, WorkerActions& out);
  [[nodiscard]] bool could_begin(const wire::Order& order) const;
  [[nodiscard]] Duration pull_time(const Computing& computing) const;
  void produced(const Produced& slice, WorkerActions& out);
  void computed(Instant now, const Computed& result, WorkerActions& out);
  void push(Computing& computing, SliceId slice, WorkerActions& out) const;
  void time_passed(Instant now, WorkerActions& out);
  void leave(WorkerActions& out);
  void send_to_chief(Instant now, wire::Message message, WorkerActions& out);

  WorkerOptions options_;
  std::optional<WorkerId> id_;
  std::variant<Outside, Stopping, Waiting, Computing, Over> state_;
  std::deque<Ordered> orders_;  // not begun yet, in order of their steps
  using PullKey = std::pair<WorkerId, Step>;
  std::map<PullKey, Pulling> pulls_;  // those that may still be needed
  std::optional<PullKey> used_;       // the one that was computed on last: what is older comes too late
  std::uint32_t attempt_ = 0;         // of saying Hello
  Instant last_sent_{};
};

}  // namespace motley::protocol
