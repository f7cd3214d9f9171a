// A server process: holds the slices of one server of a cluster that has several. It gets them from the chief, serves the workers, and
// hands them back when the chief asks. Without its chief it is worth nothing: whoever loses the chief ends, and begins anew with the next
// one (returning_server.h).
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
#include "run/attachments.h"
#include "run/clock.h"
#include "run/limited_log.h"
#include "run/shape.h"
#include "run/shard_host.h"
#include "store/layout.h"
#include "store/optimizer.h"
#include "transport/acceptor.h"
#include "transport/address.h"
#include "transport/options.h"
#include "transport/shaped.h"
#include "wire/permissions.h"

namespace motley::run {

/// What a job means for a server; made from its text by whoever understands jobs.
struct ServerKit {
  cluster::Spec cluster;
  store::Layout layout;
  store::OptimizerSpec optimizer;
  transport::JobHash job{};
};
using PrepareServer = std::function<Result<ServerKit>(const std::string& job)>;

struct ServerProcessOptions {
  ServerId server;
  transport::Address chief;
  transport::Address listen;
  std::string reach;  // what workers are told, if it is not where we listen
  transport::Options transport;
  std::size_t store_threads = 0;                   // see ShardHost
  Duration newcomer_deadline = from_seconds(120);  // a connection that is no member's yet is closed when it is silent for longer
};

class ServerProcess final : private transport::Accepts, private transport::Hears, private ShardOwner {
 public:
  ServerProcess(boost::asio::io_context& pump, ServerProcessOptions options, PrepareServer prepare,
                std::function<void(const std::string&)> log);
  ~ServerProcess() override;
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Then run the pump; `over` is called once: good when the chief has ended, which is all a server waits for.
  void start(std::function<void(Outcome)> over);
  /// Takes connections, as from its listener, once it knows the job.
  [[nodiscard]] transport::Accepts& door() { return *this; }

  /// Whether a chief was reached, and whether it has said what the job is.
  [[nodiscard]] bool reached() const { return chief_ != nullptr; }
  [[nodiscard]] bool briefed() const { return kit_.has_value(); }

 private:
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

  /// Whether a message may be listened to; what does not pass closes its connection.
  [[nodiscard]] wire::Objection objection(const transport::Connection& from, wire::Lane lane, const wire::Message& message) const;
  [[nodiscard]] wire::Objection objection_to_chief(const wire::Message& message) const;
  void expel(transport::Connection& from, const std::string& why);
  void heard_from_chief(wire::Message message);
  void heard_from_worker(transport::Shaped& from, const wire::Message& message);
  void to_shard(const wire::Message& message);
  void admitted(const wire::Admitted& member);
  void attach(transport::Connection& from, WorkerId worker);
  void watch_newcomers();
  void briefed(const wire::Briefing& briefing);
  void call(std::uint32_t number);
  void echoed(const wire::Echo& echo);
  void begin_when_all_is_here();
  void send_next_export();
  void finish(Outcome how);

  boost::asio::io_context& pump_;
  ServerProcessOptions options_;
  PrepareServer prepare_;
  std::function<void(const std::string&)> log_;
  std::function<void(Outcome)> over_;
  LimitedLog refusals_;
  std::optional<ServerKit> kit_;
  std::unique_ptr<transport::Shaped> chief_;
  Clock clock_;
  Instant called_{};
  Duration round_trip_ = Duration::max();  // to the chief and back, the shortest so far
  std::uint32_t echoes_ = 0;
  std::optional<ServerLinks> links_to_;
  Beginning beginning_;  // as it comes in
  std::optional<wire::CarriedAll> all_;
  std::unique_ptr<ShardHost> shard_;
  std::deque<wire::Message> early_;  // from the chief, before all slices were here
  std::map<const transport::Connection*, WorkerId> attached_early_;
  std::set<std::pair<SliceId, wire::Holding>> carried_;  // by the chief, before it began
  Attachments attachments_;
  std::unique_ptr<transport::Acceptor> acceptor_;
  std::map<const transport::Connection*, std::unique_ptr<transport::Shaped>> workers_;
  std::map<const transport::Connection*, Instant> heard_;  // of workers, last
  std::set<const transport::Connection*> sent_away_;
  boost::asio::steady_timer newcomers_;
  std::vector<std::unique_ptr<transport::Shaped>> old_;
  std::deque<std::shared_ptr<const Exported>> exports_;  // one after the other, so that the chief can tell them apart
  /// Pieces of the first one under way to the chief.
  std::map<std::uint64_t, std::shared_ptr<const Exported>> under_way_;
  std::uint64_t next_ticket_ = std::uint64_t{1} << 63U;
  bool ended_ = false;
  std::shared_ptr<bool> alive_;
};

}  // namespace motley::run
