// A stage's connections to the stages before and after it, and to processes that may turn out to be one: a neighbour connects as soon as it
// has its assignment, which may be before this process has its own.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/time.h"
#include "runtime/clock.h"
#include "runtime/deferred_destruction.h"
#include "runtime/expulsions.h"
#include "runtime/peer_connection.h"
#include "transport/options.h"
#include "wire/pipeline_messages.h"

namespace motley::runtime {

class NeighbourConnections {
 public:
  struct Connection {
    std::unique_ptr<PeerConnection> peer;
    bool accepted = false;                 // by this process: the stage before, or not known yet
    std::optional<wire::PeerHello> hello;  // may be of an assignment that the chief has not sent yet
    Instant since{};
  };
  enum class Opened { connected, accepted };

  /// `owner` and `expulsions` outlive this.
  NeighbourConnections(boost::asio::io_context& event_loop, const transport::Options& options, PeerOwner& owner, Expulsions& expulsions);

  PeerConnection& add(std::unique_ptr<transport::Connection> connection, Opened opened);
  /// Null: it is none of these.
  [[nodiscard]] const Connection* find(const PeerConnection& peer) const;
  /// It has said which stage of which assignment it is. Nothing else may be asked of it before.
  void identify(const PeerConnection& peer, const wire::PeerHello& hello) { connections_.at(&peer).hello = hello; }
  [[nodiscard]] const std::map<const PeerConnection*, Connection>& all() const { return connections_; }

  void expel(PeerConnection& peer, const std::string& why);
  /// Expels accepted connections that have not become the stage before, which is `neighbour` (null: none), for this long.
  void expel_idle(Duration longest, const PeerConnection* neighbour);
  /// It was closed.
  void remove(const PeerConnection& peer);
  /// Drops connections that this process opened and those of earlier assignments. Accepted ones that are not identified stay.
  void drop_before(std::uint32_t generation);
  void drop_all();
  /// Nothing is delivered to the owner any more. Connections stay open.
  void stop();

 private:
  void retire(std::unique_ptr<PeerConnection> peer);

  boost::asio::io_context& event_loop_;
  transport::Options options_;
  PeerOwner& owner_;
  Expulsions& expulsions_;
  Clock clock_;
  std::map<const PeerConnection*, Connection> connections_;
  DeferredDestruction retired_;
};

}  // namespace motley::runtime
