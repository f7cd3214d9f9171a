// Peers that have connected and are not yet part of a Connection: each gets one handshake and a deadline; pairs of lanes become
// connections.
// Two bounded tables, one for peers without a proof of the token and one for authenticated peers that wait for their other lane. So a flood
// of unauthenticated processes neither evicts an authenticated peer nor uses more than a quarter of the process's file descriptors.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "transport/acceptor.h"
#include "transport/handshake.h"
#include "transport/options.h"
#include "transport/pending.h"
#include "transport/stream.h"

namespace motley::transport {

/// Lives as long as its coroutines; leave() drops all pending peers and stops the callbacks.
class Reception : public std::enable_shared_from_this<Reception> {
 public:
  Reception(Options options, AcceptCallbacks& owner);

  void admit(Stream stream);
  /// No file descriptor is left: drops one unauthenticated peer. False when there is none.
  bool evict_one();
  /// Reports a connection that could not be accepted, like a refusal.
  void cannot_accept(const std::string& why);
  void leave();

 private:
  struct Visit {
    Pending::Id id;
    Stream stream;
    std::string from;
    std::string source;  // of its address: handshakes from one source count together when there are too many
    asio::steady_timer deadline;
    std::optional<Session> waits_for_bulk{};  // the control lane was welcomed, its bulk lane has not connected yet
    bool gone = false;
  };
  using VisitPtr = std::shared_ptr<Visit>;

  asio::awaitable<void> receive(std::shared_ptr<Reception> self, VisitPtr visit);
  asio::awaitable<void> receive_control(VisitPtr visit, Exchange claim);
  asio::awaitable<void> receive_bulk(VisitPtr visit, Exchange claim);
  void take_proof_of(const VisitPtr& visit);
  void drop(Pending::Id id, const std::string& why);
  void expect_in_time(const VisitPtr& visit);
  VisitPtr half_of(const Session& session) const;
  void remove(const VisitPtr& visit);
  /// Called at most once per visit.
  void dismiss(const VisitPtr& visit, const std::string& why);

  Options options_;
  AcceptCallbacks* owner_;  // null once left
  Pending::Id next_id_ = 0;
  std::map<Pending::Id, VisitPtr> visits_;
  Pending unproven_;
  Pending proven_;
};

}  // namespace motley::transport
