// The session of a worker, server or stage process with its chief: connects, introduces the process, checks that the job description comes
// first, keeps the connection open while the process prepares, and connects again after a loss, with growing pauses.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "base/result.h"
#include "base/time.h"
#include "runtime/callback_scope.h"
#include "runtime/deferred_destruction.h"
#include "runtime/log.h"
#include "runtime/peer_connection.h"
#include "runtime/periodic_timer.h"
#include "runtime/reconnect.h"
#include "transport/address.h"
#include "transport/options.h"

namespace motley::runtime {

struct SessionOptions {
  std::string name;  // of this process; sent in JoinRequest, printed in errors
  transport::Address chief;
  transport::Options transport;
  Duration join_heartbeat = from_seconds(10);  // period of SessionOwner::join_heartbeat()
  ReconnectOptions reconnect{};
};

/// Called on the event-loop thread.
class SessionOwner {
 public:
  SessionOwner() = default;
  SessionOwner(const SessionOwner&) = delete;
  SessionOwner& operator=(const SessionOwner&) = delete;
  virtual ~SessionOwner() = default;

  /// Periodically while connected. A chief closes connections that are silent before they joined: until then a Heartbeat is to be sent.
  virtual void join_heartbeat() {}
  /// The chief's connection is lost, and its PeerOwner is not called any more. Everything that depends on it is to be retired.
  virtual void disconnected() = 0;
  /// Once, last. Good: training ended, or the process was asked to leave.
  virtual void ended(const Outcome& how) = 0;
};

class Session {
 public:
  /// `peers` receives what the chief sends; it and `owner` outlive this.
  Session(boost::asio::io_context& event_loop, SessionOptions options, PeerOwner& peers, SessionOwner& owner, const Log& log);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  /// Once. A name that a chief would not accept ends the session at once.
  void start();
  /// The next connection is for this job alone. Until then whatever job the chief has is accepted.
  void use_job(const transport::JobHash& job) { options_.transport.job = job; }

  /// Null while there is no connection.
  [[nodiscard]] PeerConnection* chief() const;
  [[nodiscard]] bool is_chief(const PeerConnection& peer) const { return &peer == chief(); }
  /// Why a message of the chief is out of order: one JobDescription comes first.
  [[nodiscard]] wire::Objection objection_to_order(const wire::Message& message) const;
  /// To be called with the JobDescription of each connection.
  void job_received() { std::get<Connected>(state_).job_received = true; }
  [[nodiscard]] bool has_job() const;
  /// The process takes part again: the pauses before the next reconnection begin anew.
  void settled() { reconnect_.settled(); }

  /// `f` is called only while the present connection, or the present attempt, lasts.
  template <class F>
  [[nodiscard]] auto bind(F f) const {
    return attempt_.bind(std::move(f));
  }

  /// Retires the connection and connects again after a pause, or ends the session when another attempt cannot help.
  void lose(const Error& why);
  void lose(const std::string& why) { lose(world_failed(why)); }
  /// The connection stays open, and is not listened to, until this is destroyed.
  void finish(const Outcome& how);
  [[nodiscard]] bool is_over() const { return std::holds_alternative<Ended>(state_); }

 private:
  struct Disconnected {};  // not started, connecting, or pausing before the next attempt
  struct Connected {
    std::unique_ptr<PeerConnection> chief;
    bool job_received = false;
  };
  struct Ended {
    std::unique_ptr<PeerConnection> chief;  // null: there was none
  };

  void connect();
  void opened(Result<std::unique_ptr<transport::Connection>> connection);
  std::unique_ptr<PeerConnection> drop_connection();

  boost::asio::io_context& event_loop_;
  SessionOptions options_;
  PeerOwner& peers_;
  SessionOwner& owner_;
  Reconnect reconnect_;
  PeriodicTimer join_timer_;
  std::variant<Disconnected, Connected, Ended> state_;
  DeferredDestruction retired_;
  CallbackScope attempt_;  // last
};

}  // namespace motley::runtime
