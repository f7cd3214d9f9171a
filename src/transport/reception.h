// Those who have connected and are not yet trusted: each gets one handshake and a deadline, pairs of lanes become connections.
// Bounded twice: those who have not proven the token yet, and those who have and wait for their other half. So no number of strangers
// drops who knows the token, nor takes more than a quarter of the process's file descriptors.
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

/// Lives as long as its coroutines; leave() silences it and drops all who wait.
class Reception : public std::enable_shared_from_this<Reception> {
 public:
  Reception(Options options, AcceptCallbacks& owner);

  void admit(Stream stream);
  /// The process has no descriptor left for another: one who has not proven the token goes. False: there is none.
  bool evict_one();
  /// Somebody wants in and cannot be let in; told like a refusal.
  void cannot_accept(const std::string& why);
  void leave();

 private:
  struct Visit {
    Pending::Id id;
    Stream stream;
    std::string from;
    std::string source;  // of its address: what counts as one when they are too many
    asio::steady_timer deadline;
    std::optional<Session> waits_for_bulk{};  // the control lane is welcome, its other half not yet here
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
  /// Once a visit.
  void dismiss(const VisitPtr& visit, const std::string& why);

  Options options_;
  AcceptCallbacks* owner_;  // null once left
  Pending::Id next_id_ = 0;
  std::map<Pending::Id, VisitPtr> visits_;
  Pending unproven_;
  Pending proven_;
};

}  // namespace motley::transport
