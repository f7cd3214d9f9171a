// How processes join a chief: a server registers and receives its slices, a worker receives the job, asks to become a member and is
// welcomed.
//
//   worker: JoinRequest -> JobDescription (when all servers are there), Hello -> Welcome (when the chief machine admits it)
//   server: JoinRequest -> JobDescription, Echo*, ServerHello -> SlicePlacement (when all servers are there), SlicePlacement -> its state
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "protocol/chief.h"
#include "runtime/chief_peers.h"
#include "runtime/chief_process_options.h"
#include "runtime/expulsions.h"
#include "runtime/link_shapes.h"
#include "runtime/server_placement.h"
#include "runtime/shard_host.h"

namespace motley::runtime {

/// Messages were checked before (chief_validation.h). Event-loop thread only.
class JoinProtocol {
 public:
  struct Callbacks {
    std::function<void(const protocol::ChiefEvent&)> tell;  // the chief machine
    std::function<void()> placed;                           // slices were placed by distance: the layout has changed
    Log log;
  };
  /// `options` and `peers` outlive this. `initial_state` is sent to the servers other than 0.
  JoinProtocol(boost::asio::io_context& event_loop, const ChiefProcessOptions& options, ChiefPeers& peers,
               std::shared_ptr<const InitialState> initial_state, Callbacks callbacks);

  void join_requested(ChiefPeer& peer, const wire::JoinRequest& request);
  void server_registered(ChiefPeer& peer, const wire::ServerHello& hello);
  void slices_requested(ChiefPeer& peer);
  void hello_received(ChiefPeer& peer, const wire::Hello& hello, const protocol::Membership& members);
  /// The machine has admitted this peer. Servers receive the member's key before the member does, so that no other process attaches as it.
  void welcome(ChiefPeer& peer, wire::Welcome welcome);
  /// Expels pending peers that have been silent for longer than the join deadline. Pending workers send heartbeats.
  void expel_silent(Instant now, const protocol::Membership& members, Expulsions& expulsions);

  [[nodiscard]] const ServerPlacement& servers() const { return servers_; }
  [[nodiscard]] const InitialState& initial_state() const { return *initial_state_; }

 private:
  void send_job(ChiefPeer& peer);

  const ChiefProcessOptions& options_;
  ChiefPeers& peers_;
  std::shared_ptr<const InitialState> initial_state_;
  Callbacks callbacks_;
  ServerPlacement servers_;
  ServerLinks links_;
};

}  // namespace motley::runtime
