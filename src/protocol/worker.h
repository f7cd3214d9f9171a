// The protocol of a worker: waits for an order and its parameters, computes, pushes, and continues with the next order. With two orders,
// parameters and contributions are in flight while it computes. It knows the slices and the server of each; the values stay with the
// driver.
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

// Events of a worker -------------------------------------------------------------------------------------------------------------------

struct Started {};
struct Arrived {
  wire::Message message;
};
/// The device has finished this slice of the contribution, which may be sent before the rest.
struct Produced {
  Step step;
  SliceId slice;
};
/// The device has finished this step.
struct Computed {
  Step step;
  StepReport report{};
};
struct TimePassed {};
/// The device has stopped all abandoned computations.
struct DeviceFree {};
/// The user or the scheduler asks this worker to leave.
struct AskedToLeave {};
using WorkerEvent = std::variant<Started, Arrived, Produced, Computed, TimePassed, AskedToLeave, DeviceFree>;

// Actions of a worker ------------------------------------------------------------------------------------------------------------------

/// Compute this order at `base`, then report Computed. Replaces a computation in progress.
struct Compute {
  wire::Order order;
  Version base;
};
/// Stop computing; no Computed follows.
struct Abandon {};
/// Report DeviceFree as soon as the device is free. The worker asks for no order before, because a hung device would hang again.
struct AwaitDevice {};
/// The machine has ended and takes no further action.
struct Quit {};
using WorkerAction = std::variant<Send, Compute, Abandon, Quit, AwaitDevice>;
using WorkerActions = std::vector<WorkerAction>;  // carry out in order

class Worker {
 public:
  explicit Worker(WorkerOptions options);

  /// Total: an event that does not fit the present state changes nothing.
  void step(Instant now, const WorkerEvent& event, WorkerActions& out);

  [[nodiscard]] std::optional<WorkerId> id() const { return id_; }
  /// Orders that have not begun.
  [[nodiscard]] std::size_t waiting() const { return orders_.size(); }
  /// While it computes: the next order, once it could begin. Null: none yet. Valid until the next step().
  [[nodiscard]] const wire::Order* next_step() const;

 private:
  struct Outside {};   // no member: has sent Hello, or will
  struct Stopping {};  // no member: will send Hello when its device is free
  struct Waiting {};
  struct Computing {
    wire::Order order;
    Version base;
    Instant ordered{};
    std::vector<bool> pushed{};  // by SliceId; empty: none yet
  };
  struct Over {};
  /// The slices received for one step of one membership. Lanes are independent, so slices may arrive before the order, and even before the
  /// Welcome.
  struct Pulling {
    Version base;
    std::size_t slices = 0;             // of them received
    std::optional<Instant> last_slice;  // when the last one arrived
  };
  /// An order and the time of its arrival.
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
  std::deque<Ordered> orders_;  // not begun yet, in order of steps
  using PullKey = std::pair<WorkerId, Step>;
  std::map<PullKey, Pulling> pulls_;  // pulls that may still be needed
  std::optional<PullKey> used_;       // of the last computation: older ones arrive too late
  std::uint32_t attempt_ = 0;         // number of the Hello
  Instant last_sent_{};
};

}  // namespace motley::protocol
