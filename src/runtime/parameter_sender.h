// Sends snapshots to workers: keeps the pulls that wait for a snapshot or for their worker's connection, and the snapshots that connections
// still read from.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "runtime/snapshot.h"
#include "transport/anchor.h"
#include "transport/transport.h"

namespace motley::runtime {

/// The slices of one snapshot for one worker that are not sent yet.
struct Pull {
  SnapshotKey key;
  std::vector<wire::Pulled> slices;
  SharedSnapshot snapshot;  // null: being made
};

/// Event-loop thread only. The pulls of a worker are sent in the order in which they were added, none before the one before it is sent
/// whole.
class ParameterSender {
 public:
  ParameterSender(boost::asio::io_context& event_loop, const store::Layout& layout) : event_loop_(event_loop), layout_(layout) {}

  /// The worker's slices are sent through this connection from now on, beginning with those that wait.
  void attach(WorkerId worker, transport::Connection& connection);
  /// The connection is closed: nothing is sent through it any more.
  void detach(const transport::Connection& connection);
  /// Forgets the worker, its connection and its pulls.
  void forget(WorkerId worker);
  [[nodiscard]] bool is_attached(const transport::Connection& connection) const;
  [[nodiscard]] bool is_attached(const transport::Connection& connection, WorkerId worker) const;

  /// Sends this pull as soon as its snapshot and its connection allow.
  void add(WorkerId worker, Pull pull);
  /// Drops all pulls of this worker if most_waiting_pulls of them wait. Returns whether it did.
  bool drop_excess(WorkerId worker);
  /// This snapshot is complete: sends it to the workers that wait for it.
  void ready(const SnapshotKey& key, const SharedSnapshot& snapshot);
  /// An update has written these slices of the snapshot, the most urgent first: sends them to the workers that wait for them.
  void written(const SharedSnapshot& snapshot, std::vector<SliceId> slices);

  /// The connection has read the slice that it was given with this ticket.
  void sent(std::uint64_t ticket) { in_flight_.erase(ticket); }
  [[nodiscard]] std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct InFlight {
    SharedSnapshot snapshot;
    const transport::Connection* connection = nullptr;
  };
  void send_ready(WorkerId worker);

  boost::asio::io_context& event_loop_;
  store::Layout layout_;
  std::map<WorkerId, std::vector<Pull>> pulls_;
  std::map<WorkerId, transport::Connection*> attached_;
  std::map<std::uint64_t, InFlight> in_flight_;  // by ticket
  std::uint64_t next_ticket_ = 0;
  std::uint64_t bytes_sent_ = 0;
  transport::Anchor<ParameterSender> anchor_{*this};  // last: destroyed first
};

}  // namespace motley::runtime
