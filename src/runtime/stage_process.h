// A stage process: its session with the pipeline chief, the job as it has prepared it, its connections to neighbours, and one StageTraining
// for each assignment of a stage. Without its chief it drops its assignment and connects again.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "runtime/callback_scope.h"
#include "runtime/expulsions.h"
#include "runtime/job_preparation.h"
#include "runtime/log.h"
#include "runtime/neighbour_connections.h"
#include "runtime/periodic_timer.h"
#include "runtime/session.h"
#include "runtime/stage_executor.h"
#include "runtime/stage_setup.h"
#include "runtime/stage_training.h"
#include "transport/acceptor.h"
#include "transport/address.h"
#include "transport/options.h"
#include "wire/permissions.h"

namespace motley::runtime {

struct StageProcessOptions {
  transport::Address chief;
  transport::Address listen;
  std::string reach;             // the address that neighbours are told; empty: where it listens
  transport::Options transport;  // its job hash is ignored: the job description says what the job is
  std::string node;
  ReconnectOptions reconnect{};
  Duration join_heartbeat = from_seconds(10);  // period of heartbeats while it prepares
  Duration join_deadline = from_seconds(120);  // an accepted connection that is no neighbour's is closed after this
};

class StageProcess final : private PeerOwner, private SessionOwner, private transport::AcceptCallbacks, private StageExecutorOwner {
 public:
  /// `prepare` is called on a thread of its own: it may take long.
  StageProcess(boost::asio::io_context& event_loop, StageProcessOptions options, PrepareStage prepare, const Log& log);
  ~StageProcess() override = default;
  StageProcess(const StageProcess&) = delete;
  StageProcess& operator=(const StageProcess&) = delete;

  /// Then run the event loop. `over` is called once, last: good when training ended or the process was asked to leave.
  void start(std::function<void(Outcome)> over);
  void leave() { session_.finish(Done{}); }
  /// Accepts connections like its listener, once it knows the job. For tests.
  [[nodiscard]] transport::AcceptCallbacks& accept_callbacks() { return *this; }

 private:
  void job_received(const wire::JobDescription& description);
  void prepared(Result<StageSetup> setup, const std::string& job);
  void introduce_when_free();
  void send_status();

  void assign(const wire::AssignStage& assignment);
  void drop_assignment();
  void connect_to_next();
  void greeted(PeerConnection& from, const wire::PeerHello& hello);
  void accept_before(PeerConnection& peer);
  void shape(PeerConnection& peer, std::uint32_t to_stage) const;
  void report_lost_neighbour(const std::string& why);
  [[nodiscard]] bool is_of_assignment(const wire::PeerHello& hello) const;
  [[nodiscard]] bool is_before(const wire::PeerHello& hello) const;

  [[nodiscard]] wire::Objection objection_to_chief(const wire::Message& message) const;
  [[nodiscard]] wire::Objection objection_to_generation(const wire::Message& message, std::uint32_t generation) const;
  [[nodiscard]] wire::Objection objection_to_hello(const PeerConnection& from, const wire::PeerHello& hello) const;

  [[nodiscard]] wire::Objection objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const override;
  void expel(PeerConnection& peer, const std::string& why) override;
  void on_message(PeerConnection& from, wire::Message message) override;
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) override;
  void received(PeerConnection& from, const wire::Message& head) override;
  void closed(PeerConnection& peer, const Error& why) override;

  void join_heartbeat() override;
  void disconnected() override;
  void ended(const Outcome& how) override;

  void accepted(std::unique_ptr<transport::Connection> connection) override;
  void refused(const std::string& address, const std::string& reason) override { expulsions_.refused(address, reason); }

  void done(StageWork& work) override;
  void state_submitted(std::uint64_t mini_batches, std::shared_ptr<const store::StagePart> part) override;
  void failed(const std::string& what) override;

  boost::asio::io_context& event_loop_;
  StageProcessOptions options_;
  Log log_;
  std::function<void(Outcome)> over_;
  std::optional<std::string> job_;  // the text that `setup_` was made from
  std::optional<StageSetup> setup_;
  std::unique_ptr<StageExecutor> executor_;  // from the first job on
  Expulsions expulsions_;
  Session session_;
  bool introduced_ = false;  // on this connection
  PeriodicTimer status_timer_;
  NeighbourConnections neighbours_;
  std::unique_ptr<transport::Acceptor> acceptor_;
  std::unique_ptr<StageTraining> training_;  // null: no stage is assigned
  JobPreparation<StageSetup> preparation_;
  CallbackScope assignment_scope_;  // last
};

}  // namespace motley::runtime
