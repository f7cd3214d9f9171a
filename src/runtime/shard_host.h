// A server's part of a process: drives the shard machine with what arrives and carries out its actions. Contributions are received by
// ReceiveBuffers, applied by UpdateEngine, and parameters go from SnapshotCache to the workers by ParameterSender.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "protocol/shard.h"
#include "runtime/initial_state.h"
#include "runtime/parameter_sender.h"
#include "runtime/receive_buffers.h"
#include "runtime/snapshot_cache.h"
#include "runtime/store_thread.h"
#include "runtime/update_engine.h"
#include "store/layout.h"
#include "transport/transport.h"

namespace motley::runtime {

/// A server's parameters of one version, and its optimizer's state if that was asked for. Only its own slices are filled.
struct Exported {
  Version version;
  SharedBuffer values;
  std::optional<store::Moments> moments;
};

/// Receives a shard host's messages and exports, on the event-loop thread.
class ShardOwner {
 public:
  virtual ~ShardOwner() = default;
  virtual void to_chief(const wire::Message& message) = 0;
  virtual void exported(const std::shared_ptr<Exported>& what) = 0;  // the owner's from now on
};

/// Event-loop thread only. Knows no strategy and no chief.
class ShardHost {
 public:
  /// `threads`: see StoreThread.
  ShardHost(boost::asio::io_context& event_loop, ServerId server, const store::Layout& layout, const OptimizerSpec& optimizer,
            const InitialState& initial_state, ShardOwner& owner, std::size_t threads = 0);
  ShardHost(const ShardHost&) = delete;
  ShardHost& operator=(const ShardHost&) = delete;
  ~ShardHost() = default;

  /// Messages of the chief, in order. There must be no objection to them.
  void receive(const wire::Message& message);
  /// Why a message of a chief in another process must be refused; none: it may be received.
  [[nodiscard]] wire::Objection objection(const wire::Message& message) const;
  /// Why this slice from this peer must be refused, whatever its size; none: its size decides.
  [[nodiscard]] wire::Objection objection(const transport::Connection& from, const wire::Push& push) const;

  /// Slices for this worker are sent through the connection, which may push for it. A forgotten worker is never attached again.
  void attach(WorkerId worker, transport::Connection& connection);
  [[nodiscard]] bool is_attached(const transport::Connection& connection) const { return sender_.is_attached(connection); }
  /// The connection is closed: nothing is sent through it any more.
  void detach(const transport::Connection& connection);

  /// As in transport::ConnectionCallbacks, for slices of contributions. A slice is refused if its connection is not attached as its worker,
  /// or if it came before; slices of forgotten workers are received and thrown away. A slice counts once all its values are checked.
  std::span<std::byte> receive_buffer(const transport::Connection& from, const wire::Push& push, std::size_t bytes);
  void received(const transport::Connection& from, const wire::Push& push);
  bool accept_in_place(const transport::Connection& from, const wire::Push& push, std::span<const std::byte> payload,
                       const transport::BorrowedMemory& borrow);
  void sent(std::uint64_t ticket) { sender_.sent(ticket); }

  [[nodiscard]] std::uint64_t bytes_pushed() const { return contributions_.bytes_received(); }
  [[nodiscard]] std::uint64_t bytes_pulled() const { return sender_.bytes_sent(); }

 private:
  void slice_arrived(const wire::Push& push);
  void forget(WorkerId worker);
  void carry_out(const protocol::ShardActions& actions);
  void send(const protocol::Send& send);
  void begin_pull(const protocol::Snapshot& request);
  void add_to_pull(const wire::Pulled& slice);
  void compare(const protocol::Compare& wanted);
  void export_now(const protocol::ExportNow& wanted);
  void answer_probe();

  ServerId server_;
  store::Layout layout_;
  ShardOwner& owner_;
  protocol::Shard machine_;
  SliceId last_slice_;  // of this server
  StoreThread store_thread_;
  ReceiveBuffers contributions_;
  ParameterSender sender_;
  SnapshotCache snapshots_;
  UpdateEngine updates_;
  std::set<WorkerId> forgotten_;  // by the machine: their slices are thrown away
  struct PullRequest {
    protocol::Snapshot snapshot;
    std::vector<wire::Pulled> slices;
  };
  std::optional<PullRequest> pull_request_;  // the machine is emitting its Pulled messages
};

}  // namespace motley::runtime
