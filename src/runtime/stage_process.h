// A stage's process: reaches the conductor, learns the job, and is whatever stage it is told to be: it gets its part of the model, couples
// with the stage after it, and turns the crank of a stage machine. What it puts out goes straight to its neighbour, in slices, while it
// computes the next. Without its conductor it waits and tries again.
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/spec.h"
#include "pipeline/problem.h"
#include "policy/lr_schedule.h"
#include "protocol/stage.h"
#include "runtime/clock.h"
#include "runtime/limited_log.h"
#include "runtime/reconnect.h"
#include "runtime/stage_executor.h"
#include "store/stage_replica.h"
#include "store/staged_model.h"
#include "transport/acceptor.h"
#include "transport/address.h"
#include "transport/options.h"
#include "transport/shaped.h"
#include "wire/permissions.h"

namespace motley::runtime {

/// What a job means for a stage of it; made from its text by whoever understands jobs.
struct StageSetup {
  cluster::Spec cluster;
  NodeId node;                // that it is
  pipeline::Problem problem;  // its links; of blocks and devices only how many there are
  std::optional<policy::LrSchedule> rates;
  store::StageReplicaOptions replica;  // less what depends on the stage
  std::uint64_t mini_batches = 0;
  std::uint64_t snapshot_every = 1;
  std::uint32_t slices = 4;  // at least, in which an output or a gradient travels: the first is on the wire while the last is copied
  /// What this stage of a cut computes; called on the desk's thread. And where it lies in the model.
  std::function<Result<std::unique_ptr<StageSource>>(const pipeline::Cut&, std::uint32_t stage)> make;
  std::function<store::StagePlace(const pipeline::Cut&, std::uint32_t stage)> place;
  std::optional<cluster::Device> emulated;
  transport::JobHash job{};
};
using PrepareStage = std::function<Result<StageSetup>(const std::string& job)>;

struct StageProcessOptions {
  transport::Address chief;
  transport::Address listen;
  std::string reach;  // what neighbours are told, if it is not where we listen
  transport::Options transport;
  std::string node;
  ReconnectOptions reconnect{};
  Duration join_heartbeat = from_seconds(10);  // as long as it prepares
  Duration join_deadline = from_seconds(120);  // who has come and is no neighbour is closed then
};

class StageProcess final : private transport::ConnectionCallbacks, private transport::AcceptCallbacks, private StageExecutorOwner {
 public:
  /// `prepare` is called on a thread of its own: it may take long.
  StageProcess(boost::asio::io_context& event_loop, StageProcessOptions options, PrepareStage prepare,
               std::function<void(const std::string&)> log);
  ~StageProcess() override;
  StageProcess(const StageProcess&) = delete;
  StageProcess& operator=(const StageProcess&) = delete;

  /// Then run the pump; `over` is called once: good when training ended or it was asked to leave.
  void start(std::function<void(Outcome)> over);
  void leave() { finish(Done{}); }
  /// Takes connections, as from its listener, once it knows the job.
  [[nodiscard]] transport::AcceptCallbacks& accept_callbacks() { return *this; }

 private:
  using ConnectionPointer = std::unique_ptr<transport::Shaped>;
  /// What it is while one AssignStage holds.
  struct Incarnation {
    wire::AssignStage assignment;
    pipeline::Cut cut;
    pipeline::Schedule schedule;
    store::StagePlace place;
    std::shared_ptr<store::StagePart> part;   // as it comes in
    std::uint64_t missing = 0;                // values of it
    std::array<std::uint64_t, 3> received{};  // of it, by wire::StateKind
    std::optional<protocol::Stage> machine;
    transport::Connection* before = nullptr;
    transport::Connection* after = nullptr;
    bool started = false;
    /// What comes from a neighbour, by micro-batch.
    struct Coming {
      std::shared_ptr<Activation> activation;
      std::uint64_t missing = 0;  // values
    };
    std::map<std::uint64_t, Coming> inputs, gradients;
    std::uint64_t next_input = 0, next_gradient = 0;  // the micro-batch that comes now: they come whole, one after the other
    std::map<std::uint64_t, std::uint64_t> shipped;   // values of each output whose gradient is to come
    std::uint64_t allowed = 0;
    bool submit_state = false;  // when it has committed what is allowed
    std::uint64_t state_submitted = 0;
    std::vector<wire::PartRecord> did;                // since it has committed last
    std::map<std::uint64_t, std::uint64_t> versions;  // that each micro-batch uses
    std::map<std::uint64_t, Activation> outgoing, returning;
    std::uint64_t stash_bytes = 0;
    bool finite = true;
  };

  void reach();
  void reached(Result<std::unique_ptr<transport::Connection>> connection);
  void job_received(const wire::JobDescription& job_description);
  void prepared(Result<StageSetup> setup, const std::string& job);
  void lose(const Error& why);
  void lose(const std::string& why) { lose(world_failed(why)); }
  void finish(Outcome how);
  void tick();

  /// Whether a message may be listened to: of the chief, or of the neighbour that it says it is. What does not pass closes the connection.
  [[nodiscard]] wire::Objection objection(const transport::Connection& from, wire::Lane lane, const wire::Message& message) const;
  [[nodiscard]] wire::Objection objection_to_chief(const wire::Message& message) const;
  [[nodiscard]] wire::Objection objection_to_assignment(const wire::AssignStage& assignment) const;
  [[nodiscard]] wire::Objection objection_to_peer_hello(const transport::Connection& from, const wire::PeerHello& peer_hello) const;
  [[nodiscard]] wire::Objection objection_to_passed(const transport::Connection& from, const wire::ActivationSlice& passed) const;
  [[nodiscard]] bool is_before(const wire::PeerHello& peer_hello) const;
  void expel(transport::Connection& from, const std::string& why);
  void expel_idle_neighbours();
  void stay_known();
  void assign(const wire::AssignStage& assignment);
  void begin_when_all_is_here();
  void peer_hello();
  void peer_connected(transport::Connection& from, const wire::PeerHello& peer_hello);
  void take_before(transport::Shaped& connection);
  void shape(transport::Shaped& connection, std::uint32_t to_stage) const;
  void drop_incarnation();
  void drop_neighbours_before(std::uint32_t generation);
  void retire(ConnectionPointer connection);
  void part(const std::string& why);

  void tell(const protocol::StageEvent& event);
  void carry_out(const protocol::StageAction& action);
  void run(const protocol::RunPart& part);
  void commit(std::uint64_t mini);
  void submit_state_if_due();
  void ship(std::uint64_t micro, bool back);
  void tell_of_what_is_here();
  [[nodiscard]] double rate(std::uint64_t mini) const;
  [[nodiscard]] bool is_last() const { return incarnation_->assignment.stage + 1 == incarnation_->cut.size(); }

  void on_message(transport::Connection& from, wire::Message message) override;
  std::span<std::byte> receive_buffer(transport::Connection& from, const wire::Message& head, std::size_t bytes) override;
  void received(transport::Connection& from, const wire::Message& head) override;
  void sent(transport::Connection& to, std::uint64_t ticket) override;
  void closed(transport::Connection& connection, const Error& why) override;
  void accepted(std::unique_ptr<transport::Connection> connection) override;
  void refused(const std::string& address, const std::string& reason) override;

  void done(StageWork& work) override;
  void state_submitted(std::uint64_t mini_batches, std::shared_ptr<const store::StagePart> part) override;
  void failed(const std::string& what) override;

  boost::asio::io_context& event_loop_;
  StageProcessOptions options_;
  PrepareStage prepare_;
  std::function<void(const std::string&)> log_;
  std::function<void(Outcome)> over_;
  Clock clock_;                    // of this process
  std::optional<Clock> training_;  // the conductor's
  Reconnect reconnect_;
  LimitedLog refusals_;
  boost::asio::steady_timer heartbeat_;
  bool ended_ = false;
  std::uint32_t attempts_ = 0;      // answers meant for an earlier one are ignored
  std::uint64_t incarnations_ = 0;  // the same for what one AssignStage set going
  std::optional<std::string> job_;
  std::optional<StageSetup> setup_;
  std::unique_ptr<StageExecutor> step_executor_;
  ConnectionPointer chief_;
  bool job_received_ = false;  // on this connection
  bool registered_ = false;    // the same: it was told who we are
  std::unique_ptr<transport::Acceptor> acceptor_;
  struct Neighbour {
    ConnectionPointer connection;
    bool came = false;                        // to us: a stage before, or somebody who will say so
    std::optional<wire::PeerHello> reported;  // may be for a generation that the conductor has not told us of yet
    Instant since{};
    bool sent_away = false;
  };
  std::map<const transport::Connection*, Neighbour> neighbours_;
  std::optional<Incarnation> incarnation_;
  std::optional<Instant> continues_;  // the part that has just ended: the next one begins where it ended
  /// What is under way, by connection and ticket: read until it is sent or the connection is destroyed.
  std::map<const transport::Connection*, std::map<std::uint64_t, std::shared_ptr<const void>>> leaving_;
  std::uint64_t next_ticket_ = 0;
  /// Where the slice that is under way on a connection lands: written until it is here or the connection is destroyed, whatever we have
  /// become meanwhile.
  struct ReceiveBuffer {
    std::span<float> values{};
    std::shared_ptr<void> keeps{};             // what it lands in; null: nobody wants it
    std::vector<std::byte> discarded_bytes{};  // then it lands here
  };
  std::map<const transport::Connection*, ReceiveBuffer> landing_buffers_;
  std::vector<ConnectionPointer> retired_;
  std::shared_ptr<bool> alive_;
  TaskThread preparing_;
};

}  // namespace motley::runtime
