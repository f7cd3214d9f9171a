// The chief's process: the chief machine and server 0 on one pump, everybody else at the end of a connection. It turns the crank and holds
// no decision. Slices never pass the chief machine: they go between the connections and the shard host.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/spec.h"
#include "protocol/chief.h"
#include "protocol/training_outcome.h"
#include "runtime/alarm.h"
#include "runtime/clock.h"
#include "runtime/inputs.h"
#include "runtime/limited_log.h"
#include "runtime/link_shapes.h"
#include "runtime/model_assembly.h"
#include "runtime/remote_traffic.h"
#include "runtime/shard_host.h"
#include "runtime/task_thread.h"
#include "store/layout.h"
#include "store/optimizer.h"
#include "trace/event.h"
#include "transport/acceptor.h"
#include "transport/shaped.h"
#include "wire/permissions.h"

namespace motley::runtime {

struct ChiefProcessOptions {
  transport::Address listen;
  transport::Options transport;
  std::string job;  // the resolved job, handed to newcomers
  cluster::Spec cluster;
  protocol::ChiefOptions chief;
  store::Layout layout;
  OptimizerSpec optimizer;
  Duration trained_before{};                   // by the runs that this one goes on from
  Duration join_deadline = from_seconds(120);  // a connection that is no member yet is closed when it is silent for longer
  std::size_t store_threads = 0;               // see ShardHost
};

/// Everything needed to go on from one version.
struct Saved {
  protocol::ChiefState chief;
  SharedBuffer values;
  store::Moments moments;
};

struct EvaluationResult {
  double accuracy = 0;
  double loss = 0;
};

/// What a chief's process needs of the world. `evaluate` and `save` are called on a thread of their own, one at a time and in order; the
/// others on the pump thread.
struct ChiefHooks {
  std::function<Result<EvaluationResult>(std::span<const float> values)> evaluate;  // empty: accuracy is never asked for
  std::function<Outcome(const Saved&)> save;                                        // empty: nothing is kept
  std::function<void()> saving;               // a checkpoint is about to be saved: what was told so far must outlive us
  std::function<void(const Outcome&)> saved;  // how that went; may be empty
  std::function<void(const std::string&)> log;
  std::function<void(const trace::Event&)> on_event;       // the trace; zero is the first order of this training
  std::function<void(std::span<const std::byte>)> inputs;  // what the chief machine hears, for replay; may be empty
};

class ChiefProcess final : private transport::AcceptCallbacks, private transport::ConnectionCallbacks, private ShardOwner {
 public:
  ChiefProcess(boost::asio::io_context& event_loop, ChiefProcessOptions options, protocol::Chief chief, InitialState initial_state,
               ChiefHooks hooks);
  ~ChiefProcess() override;
  ChiefProcess(const ChiefProcess&) = delete;
  ChiefProcess& operator=(const ChiefProcess&) = delete;

  /// Opens the door, then run the pump; `over` is called once, when training has ended, the last model is judged and saved and everybody
  /// has been told.
  Outcome start(std::function<void(Result<protocol::TrainingOutcome>)> over);
  /// Saves where it is and ends.
  void interrupt() {
    if (!ended_) tell(protocol::Interrupted{});
  }

  [[nodiscard]] const transport::Address& address() const { return acceptor_->address(); }
  /// Takes connections, as from its listener.
  [[nodiscard]] transport::AcceptCallbacks& accept_callbacks() { return *this; }
  [[nodiscard]] const std::vector<std::string>& node_names() const { return node_names_; }
  /// The last whole model, when it is over.
  [[nodiscard]] SharedBuffer final_values() const { return final_values_; }

 private:
  /// A membership: the first of its steps that is not ordered, not begun and not contributed yet.
  struct Member {
    Step ordered, began, contributed;
  };
  struct Link {
    std::unique_ptr<transport::Shaped> connection;
    std::uint32_t id = 0;
    wire::Sender is = wire::Sender::unidentified;
    std::string name;                    // as it said, once it did
    std::optional<NodeId> node;          // of the job, with this name
    std::map<WorkerId, Member> workers;  // memberships that were given through it
    std::optional<ServerId> server;      // when a server is at its other end
    Instant last_heard{};                // last
    std::optional<Instant> heartbeat;    // the last that the machine was told of
    std::uint32_t attempt = 0;           // of its last Hello
    bool awaits_welcome = false;         // the machine has heard its Hello
    bool left = false;                   // it has said Leaving
    bool stopped = false;                // it was sent a Stop
    std::uint32_t replaced = 0;          // memberships, by a Hello while they were good
    std::uint32_t echoes = 0;            // that were answered
    bool placed = false;                 // the server has asked for its slices
    bool sent_away = false;
  };

  void accepted(std::unique_ptr<transport::Connection> connection) override;
  void refused(const std::string& address, const std::string& reason) override;

  void on_message(transport::Connection& from, wire::Message message) override;
  std::span<std::byte> receive_buffer(transport::Connection& from, const wire::Message& head, std::size_t bytes) override;
  void received(transport::Connection& from, const wire::Message& head) override;
  bool accept_in_place(transport::Connection& from, const wire::Message& head, std::span<const std::byte> payload,
                       const transport::BorrowedMemory& borrow) override;
  void sent(transport::Connection& to, std::uint64_t ticket) override;
  void closed(transport::Connection& connection, const Error& why) override;

  void to_chief(const wire::Message& message) override;
  void exported(const std::shared_ptr<Exported>& what) override;

  /// Whether a message may be listened to: of this peer, for itself, in its order, with values that make sense.
  [[nodiscard]] wire::Objection objection(const Link& link, wire::Lane lane, const wire::Message& message) const;
  [[nodiscard]] wire::Objection objection_to_identity(const Link& link, const wire::Message& message) const;
  [[nodiscard]] wire::Objection objection_to_worker(const Link& link, WorkerId worker, const wire::Message& message) const;
  [[nodiscard]] wire::Objection objection_to_hello(const Link& link, const wire::Hello& hello) const;
  [[nodiscard]] wire::Objection objection_to_server(const Link& link, const wire::Message& message) const;
  [[nodiscard]] bool is_member(const Link& link) const;
  void welcome(Link& link, wire::Welcome welcome);
  void expel_silent_pending();
  void join_requested(Link& link, const wire::JoinRequest& join_request);
  void send_job(Link& link);
  void serving(Link& link, const wire::ServerHello& serve);
  void sent_hello(Link& link, const wire::Hello& hello);
  void sent_leaving(Link& link, const wire::Leaving& leaving);
  void on_worker_message(Link& link, WorkerId worker, wire::Message message);
  void expel(Link& link, const std::string& why);

  void tell(const protocol::ChiefEvent& event);
  void step(Instant now, const protocol::ChiefEvent& event);
  void name_stuck(WorkerId worker, const protocol::Left::Stuck& stuck);
  void give_up_on(const protocol::ServerStuck& stuck);
  void carry_out(const protocol::ChiefAction& action);
  void send(const protocol::Send& send);
  void tick();
  void finish_when_done();
  void await_shutdown();
  void end(Result<protocol::TrainingOutcome> how);
  void collected();
  void log_departure(const protocol::Left& left);
  void model_not_finite(Version version, const std::string& what);
  void evaluate(const ModelRequest& wanted);
  void save(ModelRequest& wanted);
  void place_slices();
  void send_initial_state(Link& link, ServerId server);
  /// `at`: now, unless given.
  void record_trace(const trace::EventData& data, std::optional<Instant> at = {});
  void record_outcome();
  [[nodiscard]] std::uint32_t node_index(const std::string& name, std::optional<NodeId> node);
  [[nodiscard]] static std::optional<ServerId> server_called(std::string_view name);
  [[nodiscard]] Link* link_of(const transport::Connection& connection);

  boost::asio::io_context& event_loop_;
  ChiefProcessOptions options_;
  ChiefHooks hooks_;
  Clock clock_;
  Instant last_driven_{};  // the machine was told something last
  protocol::Chief chief_;
  std::optional<Instant> started_;  // of the first order
  std::optional<Recorder> recorder_;
  std::unique_ptr<ShardHost> shard_;
  InitialState initial_state_;  // for the other servers
  ServerLinks links_to_;
  std::unique_ptr<transport::Acceptor> acceptor_;
  std::map<const transport::Connection*, Link> links_;
  std::map<std::uint32_t, Link*> by_id_;
  std::map<WorkerId, Link*> by_worker_;
  std::map<WorkerId, std::string> nodes_of_workers_;  // names, as they said
  std::map<ServerId, Link*> by_server_;
  std::set<std::uint32_t> awaiting_job_;                 // links that wait until all servers are there
  std::uint64_t next_ticket_ = std::uint64_t{1} << 63U;  // above those of the shard host
  std::vector<std::string> server_addresses_;
  std::vector<double> distances_s_;         // of the servers, one way, as measured from here
  std::vector<std::uint64_t> head_starts_;  // what follows from them; empty while there is only one server
  std::uint32_t next_link_ = 0;
  std::vector<std::string> node_names_;
  RemoteTraffic remote_traffic_;

  ModelAssembly wanted_;
  std::size_t evaluating_ = 0;  // handed to the clerk and not back yet
  SharedBuffer final_values_;
  LimitedLog untrusted_log_;  // what they can cause as often as they like
  boost::asio::steady_timer ticker_;
  Alarm alarm_;  // what the strategy wants to be woken for
  boost::asio::steady_timer shutdown_timer_;
  std::optional<protocol::TrainingOutcome> outcome_;
  bool outcome_recorded_ = false;            // to the trace: it is told once the last model was judged
  std::vector<trace::Event> after_outcome_;  // what is to be told behind it
  bool ended_ = false;
  bool shutdown_announced_ = false;  // whoever has not gone by now is not waited for
  bool stopped_servers_ = false;
  std::uint64_t events_ = 0;
  std::function<void(Result<protocol::TrainingOutcome>)> over_;
  std::vector<std::unique_ptr<transport::Shaped>> retired_;
  std::shared_ptr<bool> alive_;
  std::optional<Version> unfit_;  // the clerk's: a model whose loss is not finite, and which is not saved
  TaskThread background_thread_;  // evaluates and saves; last: ends first
};

}  // namespace motley::runtime
