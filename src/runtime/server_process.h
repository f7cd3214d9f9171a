// A server process: holds the slices of one server of a cluster that has several. It gets them from the chief, serves the workers, and
// hands them back when the chief asks. Without its chief it is worth nothing: whoever loses the chief ends, and begins anew with the next
// one (reconnecting_server.h).
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "cluster/spec.h"
#include "runtime/attachments.h"
#include "runtime/clock.h"
#include "runtime/limited_log.h"
#include "runtime/link_shapes.h"
#include "runtime/shard_host.h"
#include "store/layout.h"
#include "store/optimizer.h"
#include "transport/acceptor.h"
#include "transport/address.h"
#include "transport/options.h"
#include "transport/shaped.h"
#include "wire/permissions.h"

namespace motley::runtime {

/// What a job means for a server; made from its text by whoever understands jobs.
struct ServerSetup {
  cluster::Spec cluster;
  store::Layout layout;
  OptimizerSpec optimizer;
  transport::JobHash job{};
};
using PrepareServer = std::function<Result<ServerSetup>(const std::string& job)>;

struct ServerProcessOptions {
  ServerId server;
  transport::Address chief;
  transport::Address listen;
  std::string reach;  // what workers are told, if it is not where we listen
  transport::Options transport;
  std::size_t store_threads = 0;               // see ShardHost
  Duration join_deadline = from_seconds(120);  // a connection that is no member's yet is closed when it is silent for longer
};

class ServerProcess final : private transport::AcceptCallbacks, private transport::ConnectionCallbacks, private ShardOwner {
 public:
  ServerProcess(boost::asio::io_context& event_loop, ServerProcessOptions options, PrepareServer prepare,
                std::function<void(const std::string&)> log);
  ~ServerProcess() override;
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Then run the pump; `over` is called once: good when the chief has ended, which is all a server waits for.
  void start(std::function<void(Outcome)> over);
  /// Takes connections, as from its listener, once it knows the job.
  [[nodiscard]] transport::AcceptCallbacks& accept_callbacks() { return *this; }

  /// Whether a chief was reached, and whether it has said what the job is.
  [[nodiscard]] bool reached() const { return chief_ != nullptr; }
  [[nodiscard]] bool job_received() const { return setup_.has_value(); }

 private:
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

  /// Whether a message may be listened to; what does not pass closes its connection.
  [[nodiscard]] wire::Objection objection(const transport::Connection& from, wire::Lane lane, const wire::Message& message) const;
  [[nodiscard]] wire::Objection objection_to_chief(const wire::Message& message) const;
  void expel(transport::Connection& from, const std::string& why);
  void on_chief_message(wire::Message message);
  void on_worker_message(transport::Shaped& from, const wire::Message& message);
  void to_shard(const wire::Message& message);
  void admitted(const wire::Admitted& member);
  void attach(transport::Connection& from, WorkerId worker);
  void watch_pending();
  void job_received(const wire::JobDescription& job_description);
  void call(std::uint32_t number);
  void echoed(const wire::Echo& echo);
  void begin_when_all_is_here();
  void send_next_export();
  void finish(Outcome how);

  boost::asio::io_context& event_loop_;
  ServerProcessOptions options_;
  PrepareServer prepare_;
  std::function<void(const std::string&)> log_;
  std::function<void(Outcome)> over_;
  LimitedLog refusals_;
  std::optional<ServerSetup> setup_;
  std::unique_ptr<transport::Shaped> chief_;
  Clock clock_;
  Instant called_{};
  Duration round_trip_ = Duration::max();  // to the chief and back, the shortest so far
  std::uint32_t echoes_ = 0;
  std::optional<ServerLinks> links_to_;
  InitialState initial_state_;  // as it comes in
  std::optional<wire::StateEnd> all_;
  std::unique_ptr<ShardHost> shard_;
  std::deque<wire::Message> early_;  // from the chief, before all slices were here
  std::map<const transport::Connection*, WorkerId> attached_early_;
  std::set<std::pair<SliceId, wire::StateKind>> received_chunks_;  // by the chief, before it began
  Attachments attachments_;
  std::unique_ptr<transport::Acceptor> acceptor_;
  std::map<const transport::Connection*, std::unique_ptr<transport::Shaped>> workers_;
  std::map<const transport::Connection*, Instant> last_heard_;  // of workers, last
  std::set<const transport::Connection*> sent_away_;
  boost::asio::steady_timer join_timer_;
  std::vector<std::unique_ptr<transport::Shaped>> retired_;
  std::deque<std::shared_ptr<const Exported>> exports_;  // one after the other, so that the chief can tell them apart
  /// Pieces of the first one under way to the chief.
  std::map<std::uint64_t, std::shared_ptr<const Exported>> under_way_;
  std::uint64_t next_ticket_ = std::uint64_t{1} << 63U;
  bool ended_ = false;
  std::shared_ptr<bool> alive_;
};

}  // namespace motley::runtime
