// The process of a chief: drives the chief machine and the shard of server 0 on one event loop, with a connection to every other process.
// It takes no decision about the training. Slices go between connections and shard and never through the chief machine.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "protocol/chief.h"
#include "protocol/training_outcome.h"
#include "runtime/chief_hooks.h"
#include "runtime/chief_machine.h"
#include "runtime/chief_peers.h"
#include "runtime/chief_process_options.h"
#include "runtime/chief_trace.h"
#include "runtime/expulsions.h"
#include "runtime/join_protocol.h"
#include "runtime/model_snapshots.h"
#include "runtime/peer_listener.h"
#include "runtime/periodic_timer.h"
#include "runtime/remote_traffic.h"
#include "runtime/shard_host.h"
#include "runtime/shutdown_sequence.h"

namespace motley::runtime {

/// Event-loop thread only; its shard and its snapshots have threads of their own.
class ChiefProcess final : private PeerOwner, private ShardOwner, private SnapshotOwner {
 public:
  ChiefProcess(boost::asio::io_context& event_loop, ChiefProcessOptions options, protocol::Chief chief, InitialState initial_state,
               ChiefHooks hooks);
  ~ChiefProcess() override = default;
  ChiefProcess(const ChiefProcess&) = delete;
  ChiefProcess& operator=(const ChiefProcess&) = delete;

  /// Listens; then run the event loop. `over` is called once, when training has ended, the last model is evaluated and saved, and all
  /// workers and servers were told.
  Outcome start(std::function<void(Result<protocol::TrainingOutcome>)> over);
  /// Saves a checkpoint and ends the training.
  void interrupt() { machine_.tell(protocol::Interrupted{}); }

  [[nodiscard]] const transport::Address& address() const { return listener_.address(); }
  /// Takes connections as from its listener.
  [[nodiscard]] transport::AcceptCallbacks& accept_callbacks() { return listener_.callbacks(); }
  [[nodiscard]] const std::vector<std::string>& node_names() const { return trace_.node_names(); }
  /// The last whole model, once training is over.
  [[nodiscard]] SharedBuffer final_values() const { return snapshots_.newest_values(); }

 private:
  [[nodiscard]] wire::Objection objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const override;
  void expel(PeerConnection& peer, const std::string& why) override;
  void on_message(PeerConnection& from, wire::Message message) override;
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) override;
  void received(PeerConnection& from, const wire::Message& head) override;
  bool accept_in_place(PeerConnection& from, const wire::Message& head, std::span<const std::byte> payload,
                       const transport::BorrowedMemory& borrow) override;
  void sent(PeerConnection& to, std::uint64_t ticket) override;
  void closed(PeerConnection& connection, const Error& why) override;

  void to_chief(const wire::Message& message) override;
  void exported(const std::shared_ptr<Exported>& what) override;

  void evaluated(const trace::Event& event) override { trace_.record(event.at, event.data); }
  void evaluation_failed(const Error& why) override { end(why); }
  void model_not_finite(Version version, const std::string& what) override;
  void snapshots_advanced() override { finish_when_done(); }

  void tick();
  void heartbeat(ChiefPeer& peer, const wire::Heartbeat& message);
  void leaving(ChiefPeer& peer, const wire::Leaving& message);
  void began(ChiefPeer& peer, const wire::Began& message);
  void contributed(ChiefPeer& peer, wire::Contributed message);
  void server_message(ServerId server, const wire::Message& message);

  void carry_out(const protocol::ChiefAction& action);
  void joined(const protocol::Joined& joined);
  void left(const protocol::Left& left);
  void send(const protocol::Send& send);
  void send_to_server(ServerId server, const wire::Message& message);
  void send_to_worker(ChiefPeer& peer, const wire::Message& message);
  void finished(protocol::EndReason why);
  void finish_when_done();
  void end(Result<protocol::TrainingOutcome> how);
  [[nodiscard]] std::unique_ptr<ShardHost> make_shard(const store::Layout& layout, const InitialState& state);

  boost::asio::io_context& event_loop_;
  ChiefProcessOptions options_;
  ChiefHooks hooks_;
  ChiefMachine machine_;
  ChiefTrace trace_;
  std::unique_ptr<ShardHost> shard_;  // server 0
  Expulsions expulsions_;
  ChiefPeers peers_;
  PeerListener listener_;
  JoinProtocol join_;
  RemoteTraffic remote_traffic_;
  PeriodicTimer ticker_;
  ShutdownSequence shutdown_;
  std::optional<protocol::TrainingOutcome> outcome_;  // once training has ended
  std::function<void(Result<protocol::TrainingOutcome>)> over_;
  ModelSnapshots snapshots_;  // last: its thread ends first
};

}  // namespace motley::runtime
