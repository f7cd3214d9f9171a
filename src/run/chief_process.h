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
#include "protocol/ending.h"
#include "run/alarm.h"
#include "run/clock.h"
#include "run/collection.h"
#include "run/elsewhere.h"
#include "run/inputs.h"
#include "run/limited_log.h"
#include "run/shape.h"
#include "run/shard_host.h"
#include "run/task_thread.h"
#include "store/layout.h"
#include "store/optimizer.h"
#include "trace/event.h"
#include "transport/acceptor.h"
#include "transport/shaped.h"
#include "wire/permissions.h"

namespace motley::run {

struct ChiefProcessOptions {
  transport::Address listen;
  transport::Options transport;
  std::string job;  // the resolved job, handed to newcomers
  cluster::Spec cluster;
  protocol::ChiefOptions chief;
  store::Layout layout;
  store::OptimizerSpec optimizer;
  Duration trained_before{};                       // by the runs that this one goes on from
  Duration newcomer_deadline = from_seconds(120);  // a connection that is no member yet is closed when it is silent for longer
  std::size_t store_threads = 0;                   // see ShardHost
};

/// Everything needed to go on from one version.
struct Saved {
  protocol::ChiefState chief;
  SharedBuffer values;
  store::Moments moments;
};

struct Judgement {
  double accuracy = 0;
  double loss = 0;
};

/// What a chief's process needs of the world. `evaluate` and `save` are called on a thread of their own, one at a time and in order; the
/// others on the pump thread.
struct ChiefHooks {
  std::function<Result<Judgement>(std::span<const float> values)> evaluate;  // empty: accuracy is never asked for
  std::function<Outcome(const Saved&)> save;                                 // empty: nothing is kept
  std::function<void()> saving;               // a checkpoint is about to be saved: what was told so far must outlive us
  std::function<void(const Outcome&)> saved;  // how that went; may be empty
  std::function<void(const std::string&)> log;
  std::function<void(const trace::Event&)> told;           // the trace; zero is the first order of this training
  std::function<void(std::span<const std::byte>)> inputs;  // what the chief machine hears, for replay; may be empty
};

class ChiefProcess final : private transport::Accepts, private transport::Hears, private ShardOwner {
 public:
  ChiefProcess(boost::asio::io_context& pump, ChiefProcessOptions options, protocol::Chief chief, Beginning beginning, ChiefHooks hooks);
  ~ChiefProcess() override;
  ChiefProcess(const ChiefProcess&) = delete;
  ChiefProcess& operator=(const ChiefProcess&) = delete;

  /// Opens the door, then run the pump; `over` is called once, when training has ended, the last model is judged and saved and everybody
  /// has been told.
  Outcome start(std::function<void(Result<protocol::Ending>)> over);
  /// Saves where it is and ends.
  void interrupt() {
    if (!ended_) tell(protocol::Interrupted{});
  }

  [[nodiscard]] const transport::Address& address() const { return acceptor_->address(); }
  /// Takes connections, as from its listener.
  [[nodiscard]] transport::Accepts& door() { return *this; }
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
    wire::Sender is = wire::Sender::newcomer;
    std::string name;                    // as it said, once it did
    std::optional<NodeId> node;          // of the job, with this name
    std::map<WorkerId, Member> workers;  // memberships that were given through it
    std::optional<ServerId> server;      // when a server is at its other end
    Instant heard{};                     // last
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

  void heard(transport::Connection& from, wire::Message message) override;
  std::span<std::byte> room(transport::Connection& from, const wire::Message& head, std::size_t bytes) override;
  void received(transport::Connection& from, const wire::Message& head) override;
  bool keep(transport::Connection& from, const wire::Message& head, std::span<const std::byte> payload,
            const transport::Loan& loan) override;
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
  void expel_silent_newcomers();
  void enquired(Link& link, const wire::Enquire& enquire);
  void brief(Link& link);
  void serving(Link& link, const wire::Serve& serve);
  void said_hello(Link& link, const wire::Hello& hello);
  void said_leaving(Link& link, const wire::Leaving& leaving);
  void said_by_worker(Link& link, WorkerId worker, wire::Message message);
  void expel(Link& link, const std::string& why);

  void tell(const protocol::ChiefEvent& event);
  void step(Instant now, const protocol::ChiefEvent& event);
  void name_stuck(WorkerId worker, const protocol::Left::Stuck& stuck);
  void give_up_on(const protocol::ServerStuck& stuck);
  void carry_out(const protocol::ChiefAction& action);
  void send(const protocol::Send& send);
  void tick();
  void finish_when_done();
  void await_farewell();
  void end(Result<protocol::Ending> how);
  void collected();
  void log_departure(const protocol::Left& left);
  void model_not_finite(Version version, const std::string& what);
  void judge(const Wanted& wanted);
  void save(Wanted& wanted);
  void place_slices();
  void send_beginning(Link& link, ServerId server);
  void narrate(trace::Event event);
  void tell_ending();
  [[nodiscard]] std::uint32_t node_index(const std::string& name, std::optional<NodeId> node);
  [[nodiscard]] static std::optional<ServerId> server_called(std::string_view name);
  [[nodiscard]] Link* link_of(const transport::Connection& connection);

  boost::asio::io_context& pump_;
  ChiefProcessOptions options_;
  ChiefHooks hooks_;
  Clock clock_;
  Instant attended_{};  // the machine was told something last
  protocol::Chief chief_;
  std::optional<Instant> started_;  // of the first order
  std::optional<Recorder> recorder_;
  std::unique_ptr<ShardHost> shard_;
  Beginning beginning_;  // for the other servers
  ServerLinks links_to_;
  std::unique_ptr<transport::Acceptor> acceptor_;
  std::map<const transport::Connection*, Link> links_;
  std::map<std::uint32_t, Link*> by_id_;
  std::map<WorkerId, Link*> by_worker_;
  std::map<WorkerId, std::string> nodes_of_workers_;  // names, as they said
  std::map<ServerId, Link*> by_server_;
  std::set<std::uint32_t> unbriefed_;                    // links that wait until all servers are there
  std::uint64_t next_ticket_ = std::uint64_t{1} << 63U;  // above those of the shard host
  std::vector<std::string> server_addresses_;
  std::vector<double> distances_s_;         // of the servers, one way, as measured from here
  std::vector<std::uint64_t> head_starts_;  // what follows from them; empty while there is only one server
  std::uint32_t next_link_ = 0;
  std::vector<std::string> node_names_;
  Elsewhere elsewhere_;

  Collection wanted_;
  std::size_t judging_ = 0;  // handed to the clerk and not back yet
  SharedBuffer final_values_;
  LimitedLog strangers_;  // what they can cause as often as they like
  boost::asio::steady_timer ticker_;
  Alarm alarm_;  // what the strategy wants to be woken for
  boost::asio::steady_timer farewell_;
  std::optional<protocol::Ending> ending_;
  bool ending_told_ = false;                // to the trace: it is told once the last model was judged
  std::vector<trace::Event> after_ending_;  // what is to be told behind it
  bool ended_ = false;
  bool said_farewell_ = false;  // whoever has not gone by now is not waited for
  bool stopped_servers_ = false;
  std::uint64_t events_ = 0;
  std::function<void(Result<protocol::Ending>)> over_;
  std::vector<std::unique_ptr<transport::Shaped>> old_;
  std::shared_ptr<bool> alive_;
  std::optional<Version> unfit_;  // the clerk's: a model whose loss is not finite, and which is not saved
  TaskThread clerk_;              // evaluates and saves; last: ends first
};

}  // namespace motley::run
