// A worker process: its session with the chief, the job as it has prepared it, its connections to the servers, and one WorkerTraining for
// each time that all of them are connected. After any connection is lost it begins anew with a connection to the chief.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/deferred_destruction.h"
#include "runtime/job_preparation.h"
#include "runtime/link_shapes.h"
#include "runtime/log.h"
#include "runtime/server_connections.h"
#include "runtime/session.h"
#include "runtime/step_executor.h"
#include "runtime/worker_setup.h"
#include "runtime/worker_training.h"
#include "transport/address.h"
#include "transport/options.h"
#include "wire/permissions.h"

namespace motley::runtime {

struct WorkerProcessOptions {
  transport::Address chief;
  transport::Options transport;  // its job hash is ignored: the job description says what the job is
  std::string node;
  Duration join_heartbeat = from_seconds(10);  // period of heartbeats before it is a member; shorter than the chief's join_deadline
  ReconnectOptions reconnect{};
};

class WorkerProcess final : private PeerOwner, private SessionOwner, private WorkerTrainingOwner, private StepExecutorOwner {
 public:
  /// `prepare` is called on a thread of its own: it may take long.
  WorkerProcess(boost::asio::io_context& event_loop, const WorkerProcessOptions& options, PrepareWorker prepare, const Log& log);
  ~WorkerProcess() override = default;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Then run the event loop. `over` is called once, last: good when training ended or the worker was asked to leave.
  void start(std::function<void(Outcome)> over);
  /// On SIGTERM: returns its lease and ends.
  void leave();

 private:
  /// A job as this worker has prepared it. It outlives connections.
  struct Job {
    std::string text;
    std::vector<std::uint64_t> head_starts;  // of the servers, as the layout has them
    WorkerSetup setup;                       // without its step_executor, which has moved to the next
    std::uint64_t epoch_samples = 0;
    std::unique_ptr<StepExecutor> executor;
    std::optional<WorkerLink> link;         // none: links are real
    std::optional<cluster::Affine> cost{};  // of a step, as measured by the executor's warm-up; none: it needs no warm-up
    [[nodiscard]] bool is(const wire::JobDescription& described) const {
      return text == described.job && head_starts == described.head_starts;
    }
  };

  void job_received(const wire::JobDescription& description);
  void prepared(Result<WorkerSetup> setup, const wire::JobDescription& description);
  void warm_up(const std::vector<std::string>& servers);
  void connect_servers(const std::vector<std::string>& addresses);
  void begin_training();
  [[nodiscard]] protocol::WorkerOptions machine_options() const;

  [[nodiscard]] wire::Objection objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const override;
  void expel(PeerConnection& peer, const std::string& why) override { peer.close(why); }
  void on_message(PeerConnection& from, wire::Message message) override;
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) override;
  void received(PeerConnection& from, const wire::Message& head) override;
  bool accept_in_place(PeerConnection& from, const wire::Message& head, std::span<const std::byte> payload,
                       const transport::BorrowedMemory& borrow) override;
  void closed(PeerConnection& peer, const Error& why) override;

  void join_heartbeat() override;
  void disconnected() override;
  void ended(const Outcome& how) override;

  void quit() override;
  void lose(const std::string& why) override;

  void produced(const std::shared_ptr<Computation>& computation, SliceId slice) override;
  void computed(const std::shared_ptr<Computation>& computation, const StepReport& report) override;
  void failed(const std::string& what) override;

  boost::asio::io_context& event_loop_;
  std::string node_;
  transport::Options transport_;
  std::function<void(Outcome)> over_;
  bool leaving_ = false;  // asked to, or training has ended: the session ends when the chief's connection does
  std::optional<Job> job_;
  Session session_;
  std::unique_ptr<ServerConnections> servers_;  // null: the job is not prepared for this connection
  std::unique_ptr<WorkerTraining> training_;    // null: not all servers are connected
  DeferredDestruction retired_;
  JobPreparation<WorkerSetup> preparation_;
};

}  // namespace motley::runtime
