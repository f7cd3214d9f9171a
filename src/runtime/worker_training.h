// The steps of a worker, from its Hello to the loss of its chief: drives the worker machine (protocol/worker.h) with what is received and
// computed, and carries out its answers.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/ids.h"
#include "protocol/worker.h"
#include "runtime/callback_scope.h"
#include "runtime/clock.h"
#include "runtime/gradient_push.h"
#include "runtime/parameter_receiver.h"
#include "runtime/periodic_timer.h"
#include "runtime/server_connections.h"
#include "runtime/step_executor.h"

namespace motley::runtime {

/// Called on the event-loop thread. Both calls may stop() the training, neither may destroy it.
class WorkerTrainingOwner {
 public:
  WorkerTrainingOwner() = default;
  WorkerTrainingOwner(const WorkerTrainingOwner&) = delete;
  WorkerTrainingOwner& operator=(const WorkerTrainingOwner&) = delete;
  virtual ~WorkerTrainingOwner() = default;

  /// The machine has ended: the connection is to be closed once everything that waits is sent.
  virtual void quit() = 0;
  /// A server sent what cannot be used.
  virtual void lose(const std::string& why) = 0;
};

class WorkerTraining {
 public:
  struct Options {
    protocol::WorkerOptions machine;
    std::uint64_t epoch_samples = 0;
  };
  /// `executor`, `servers` and `owner` outlive this, or its call of stop(). The worker introduces itself with start().
  WorkerTraining(boost::asio::io_context& event_loop, Options options, StepExecutor& executor, ServerConnections& servers,
                 WorkerTrainingOwner& owner);
  WorkerTraining(const WorkerTraining&) = delete;
  WorkerTraining& operator=(const WorkerTraining&) = delete;
  ~WorkerTraining() = default;

  void start();
  /// Returns the lease and quits.
  void leave() { tell(protocol::AskedToLeave{}); }
  /// From now on nothing is computed, sent or told to the owner. It may be in the middle of one of its own functions.
  void stop();
  [[nodiscard]] bool is_member() const { return machine_.id().has_value(); }

  /// Why a message of the chief or a server must not be delivered; none: it may.
  [[nodiscard]] wire::Objection objection(const PeerConnection& from, const wire::Message& message) const;
  void on_message(const wire::Message& message);
  /// As of PeerOwner, for slices of parameters.
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Pulled& pulled, std::size_t bytes) {
    return parameters_.receive_buffer(from, pulled, bytes);
  }
  void received(PeerConnection& from, const wire::Pulled& pulled);
  bool accept_in_place(const wire::Pulled& pulled, std::span<const std::byte> payload, const transport::BorrowedMemory& borrow);

  /// As of StepExecutorOwner. Computations of an earlier training are ignored.
  void produced(const Computation& computation, SliceId slice);
  void computed(const Computation& computation, const StepReport& report);

 private:
  [[nodiscard]] wire::Objection objection_to_order(const wire::Order& order) const;
  void arrived(const wire::Pulled& pulled, const std::shared_ptr<IncomingParameters>& incoming);
  void attach_if_admitted(const wire::Welcome& welcome);
  void tell(const protocol::WorkerEvent& event);
  void carry_out(const protocol::WorkerAction& action);
  void send(const protocol::Send& send);
  void compute(const wire::Order& order);
  void await_device();
  void prefetch();

  StepExecutor& executor_;
  ServerConnections& servers_;
  WorkerTrainingOwner& owner_;
  std::uint64_t epoch_samples_;
  Duration tick_;
  protocol::Worker machine_;
  ParameterReceiver parameters_;
  GradientPush push_;
  Clock clock_;                             // of the machine
  std::optional<Clock> training_;           // the chief's, as of the last order
  std::shared_ptr<Computation> computing_;  // null: nothing
  std::optional<Step> prefetched_;          // the last one
  bool stopped_ = false;
  PeriodicTimer heartbeat_;
  CallbackScope scope_;  // last
};

}  // namespace motley::runtime
