// A server's connections to workers: which member each belongs to, and how long each that belongs to none may be silent.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/ids.h"
#include "base/time.h"
#include "runtime/attachments.h"
#include "runtime/clock.h"
#include "runtime/deferred_destruction.h"
#include "runtime/expulsions.h"
#include "runtime/peer_connection.h"
#include "transport/options.h"
#include "wire/message.h"

namespace motley::runtime {

class WorkerConnections {
 public:
  using Attached = std::function<void(WorkerId, PeerConnection&)>;
  /// `owner` and `expulsions` outlive this. `attached` is called when a connection is known to be a member's.
  WorkerConnections(boost::asio::io_context& event_loop, const transport::Options& options, PeerOwner& owner, Expulsions& expulsions,
                    Attached attached);

  void add(std::unique_ptr<transport::Connection> connection);
  /// It sent a message.
  void note_message(const PeerConnection& worker) { connections_.at(&worker).last_message = clock_.now(); }
  /// It claims to be a member's; expelled when that is wrong, at once or once the chief has named the member's key.
  void claimed(PeerConnection& worker, const wire::Attach& claim);
  void admitted(const wire::Admitted& member);
  [[nodiscard]] bool knows(WorkerId member) const { return attachments_.knows(member); }
  void forget(WorkerId member) { attachments_.forget(member); }
  /// Calls `attached` again for each connection that is known to be a member's.
  void repeat_attached() const;
  /// Workers that wait for a chief's Welcome send heartbeats; members may be silent for as long as they compute.
  void expel_silent(Duration longest, const std::function<bool(const PeerConnection&)>& is_member);
  void expel(PeerConnection& worker, const std::string& why);
  /// It was closed.
  void remove(const PeerConnection& worker);
  /// Nothing is delivered to the owner any more.
  void stop();

 private:
  struct Connection {
    std::unique_ptr<PeerConnection> peer;
    Instant last_message{};
    std::optional<WorkerId> member{};
  };
  void answer(PeerConnection& worker, WorkerId claimed, Attachments::Answer answer);

  boost::asio::io_context& event_loop_;
  transport::Options options_;
  PeerOwner& owner_;
  Expulsions& expulsions_;
  Attached attached_;
  Clock clock_;
  Attachments attachments_;
  std::map<const PeerConnection*, Connection> connections_;
  DeferredDestruction retired_;
};

}  // namespace motley::runtime
