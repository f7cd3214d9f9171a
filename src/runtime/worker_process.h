// A worker process: reaches the chief, learns the job, reaches the servers, and then turns the crank of a worker machine until training is
// over. Whoever it loses, it tries to reach again, with growing pauses; what it was computing then is worth nothing to anybody.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bits.h"
#include "base/result.h"
#include "cluster/spec.h"
#include "protocol/worker.h"
#include "runtime/clock.h"
#include "runtime/link_shapes.h"
#include "runtime/reconnect.h"
#include "runtime/step_executor.h"
#include "store/push_stream.h"
#include "transport/address.h"
#include "transport/options.h"
#include "transport/shaped.h"
#include "wire/permissions.h"

namespace motley::runtime {

/// What a job means for one worker; made from its text by whoever understands jobs.
struct WorkerSetup {
  StepExecutorSetup step_executor;
  cluster::Spec cluster;
  std::optional<NodeId> node;  // whose links to emulate
  std::uint32_t node_index = wire::no_node_index;
  std::uint32_t max_batch = 0;
  transport::JobHash job{};
};
using PrepareWorker = std::function<Result<WorkerSetup>(const std::string& job)>;

struct WorkerProcessOptions {
  transport::Address chief;
  transport::Options transport;  // its job hash is ignored: the briefing says what the job is
  std::string node;
  Duration join_heartbeat = from_seconds(10);  // as long as it is no member: a chief closes what is silent for join_deadline
  ReconnectOptions reconnect{};
};

/// What happens, in sentences, for a log.
using Log = std::function<void(const std::string&)>;

class WorkerProcess final : private transport::ConnectionCallbacks, private StepExecutorOwner {
 public:
  /// `prepare` is called on a thread of its own: it may take long.
  WorkerProcess(boost::asio::io_context& event_loop, WorkerProcessOptions options, PrepareWorker prepare, Log log);
  ~WorkerProcess() override;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Then run the pump; `over` is called once, when there is nothing more to do: good when training ended or the worker was asked to leave.
  void start(std::function<void(Outcome)> over);
  /// On SIGTERM: returns what it holds and goes.
  void leave();

 private:
  using ConnectionPointer = std::unique_ptr<transport::Shaped>;
  /// What stands while the chief of one briefing is reached.
  struct Incarnation {
    ConnectionPointer chief;
    std::vector<std::string> server_addresses;
    std::vector<ConnectionPointer> servers;  // by ServerId; [0] stays empty
    std::size_t servers_missing = 0;
    std::optional<protocol::Worker> machine;
    bool job_received = false;
    std::optional<WorkerId> attached;  // as the servers know us
    std::map<std::pair<WorkerId, Step>, std::shared_ptr<IncomingParameters>> incoming_parameters;
    /// Where the slice that is under way on a connection lands; it stays until the slice is here, whatever is computed meanwhile.
    struct ReceiveBuffer {
      std::shared_ptr<IncomingParameters> incoming;  // null: meant for an earlier us
      std::vector<std::byte> bytes;                  // when it is not to land in `incoming` itself: encoded, or for nobody
    };
    std::map<const transport::Connection*, ReceiveBuffer> landing_buffers;
    std::shared_ptr<Computation> computing;
    std::optional<Step> prefetched;           // to the desk, last
    std::unique_ptr<store::PushStream> push;  // what rounding keeps back
    std::optional<Step> pushing;              // of which it has begun to code slices
  };

  void reach();
  void reached(Result<std::unique_ptr<transport::Connection>> connection);
  void job_received(const wire::JobDescription& job_description);
  void prepared(Result<WorkerSetup> setup, const wire::JobDescription& job_description);
  void reach_servers();
  void reach_server(std::uint32_t server);
  void begin();
  void lose(const Error& why);
  void lose(const std::string& why) { lose(world_failed(why)); }
  /// Whether a message may be listened to; what does not pass closes its connection.
  [[nodiscard]] wire::Objection objection(const transport::Connection& from, wire::Lane lane, const wire::Message& message) const;
  [[nodiscard]] wire::Objection objection_to_order(const wire::Order& order) const;
  [[nodiscard]] wire::Objection objection_to_slice(const transport::Connection& from, const wire::Pulled& pulled) const;
  [[nodiscard]] bool is_ours(const transport::Connection& connection) const;
  void stay_known();
  void finish(Outcome how);
  void tick();

  void tell(const protocol::WorkerEvent& event);
  void carry_out(const protocol::WorkerAction& action);
  void send(const protocol::Send& send);
  void compute(const protocol::Compute& order);
  void prefetch();
  [[nodiscard]] std::shared_ptr<std::vector<std::byte>> coded(const wire::Push& push);
  void forget_incoming_before(std::map<std::pair<WorkerId, Step>, std::shared_ptr<IncomingParameters>>::iterator incoming);
  [[nodiscard]] bool sent_as_bf16(const wire::Pulled& pulled) const;
  [[nodiscard]] Outcome take_in(const wire::Pulled& pulled, std::span<const std::byte> bytes);
  [[nodiscard]] std::shared_ptr<IncomingParameters> last_before(const std::pair<WorkerId, Step>& step) const;
  void arrived(const wire::Pulled& pulled, const std::shared_ptr<IncomingParameters>& incoming);
  [[nodiscard]] transport::Connection* to_server(std::uint32_t server) const;

  void on_message(transport::Connection& from, wire::Message message) override;
  std::span<std::byte> receive_buffer(transport::Connection& from, const wire::Message& head, std::size_t bytes) override;
  void received(transport::Connection& from, const wire::Message& head) override;
  bool accept_in_place(transport::Connection& from, const wire::Message& head, std::span<const std::byte> payload,
                       const transport::BorrowedMemory& borrow) override;
  void sent(transport::Connection& to, std::uint64_t ticket) override;
  void closed(transport::Connection& connection, const Error& why) override;

  void produced(const std::shared_ptr<Computation>& computation, SliceId slice) override;
  void computed(const std::shared_ptr<Computation>& computation, const StepReport& report) override;
  void failed(const std::string& what) override;

  boost::asio::io_context& event_loop_;
  WorkerProcessOptions options_;
  PrepareWorker prepare_;
  Log log_;
  std::function<void(Outcome)> over_;
  Clock clock_;                    // of this process
  std::optional<Clock> training_;  // the chief's, as far as known
  Reconnect reconnect_;
  boost::asio::steady_timer heartbeat_;
  boost::asio::steady_timer join_timer_;
  bool ended_ = false;
  bool leaving_ = false;

  std::optional<std::string> job_;          // that the kit was made for
  std::vector<std::uint64_t> head_starts_;  // of the servers, as its layout has them
  std::uint64_t epoch_samples_ = 0;
  std::optional<WorkerSetup> setup_;  // less its desk
  std::unique_ptr<StepExecutor> step_executor_;
  std::optional<WorkerLink> link_;
  std::optional<cluster::Affine> warm_up_cost_;  // of a step, measured while the device warmed up; empty: it did not need to
  std::uint32_t incarnations_ = 0;               // answers meant for an earlier life are ignored
  std::optional<Incarnation> incarnation_;
  /// Contributions under way; the transport reads them until it says sent.
  struct Leaving {
    SharedBuffer flat;
    std::shared_ptr<std::vector<std::byte>> coded;
  };
  std::map<std::uint64_t, Leaving> leaving_slices_;
  std::uint64_t next_ticket_ = 0;
  /// Lost, destroyed when nobody is inside its connections: until then they read and write what lies beside them.
  struct Old {
    std::map<std::uint64_t, Leaving> leaving_slices;
    Incarnation incarnation;  // goes first: its connections know what they have lent
  };
  std::vector<Old> retired_;
  std::shared_ptr<bool> alive_;
  TaskThread preparing_;
};

}  // namespace motley::runtime
