// Those who have connected and are not yet trusted: each gets one handshake and a deadline, pairs of lanes become connections.
// Bounded: when more are here than allowed the oldest goes, for an honest handshake takes milliseconds and a hostile one all its time.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "transport/acceptor.h"
#include "transport/handshake.h"
#include "transport/options.h"
#include "transport/stream.h"

namespace motley::transport {

/// Lives as long as its coroutines; leave() silences it and drops all who wait.
class Reception : public std::enable_shared_from_this<Reception> {
 public:
  Reception(Options options, Accepts& owner) : options_(std::move(options)), owner_(&owner) {}

  void admit(Stream stream);
  void leave();

 private:
  struct Visit {
    Stream stream;
    std::string from;
    asio::steady_timer deadline;
    std::optional<Session> waits_for_bulk{};  // the control lane is welcome, its other half not yet here
    bool gone = false;
  };
  using VisitPtr = std::shared_ptr<Visit>;

  asio::awaitable<void> receive(std::shared_ptr<Reception> self, VisitPtr visit);
  asio::awaitable<void> receive_control(VisitPtr visit, Exchange claim);
  asio::awaitable<void> receive_bulk(VisitPtr visit, Exchange claim);
  void expect_in_time(const VisitPtr& visit);
  VisitPtr half_of(const Session& session) const;
  void remove(const VisitPtr& visit);
  /// Once a visit.
  void dismiss(const VisitPtr& visit, const std::string& why);

  Options options_;
  Accepts* owner_;              // null once left
  std::list<VisitPtr> visits_;  // oldest first
};

}  // namespace motley::transport
