// How a process that has lost its chief connects again: with growing pauses, until it succeeds, is refused by an authenticated chief, or
// has waited for too long. A refusal without proof of the token ends only a process that was never connected: any process may answer on the
// port.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/rng.h"
#include "base/time.h"
#include "runtime/clock.h"
#include "transport/anchor.h"

namespace motley::runtime {

struct ReconnectOptions {
  std::chrono::milliseconds first_pause{100};  // doubles; each is drawn from its upper half: the processes of a cluster spread out
  std::chrono::milliseconds longest_pause{5'000};
  std::chrono::milliseconds patience{120'000};  // gives up after this time without a chief
  /// Gives up after this time of refusals when it was never connected: longer than another program holds the chief's port by accident,
  /// short enough for a user who has mistyped a token or a port.
  std::chrono::milliseconds first_contact{10'000};
};

/// Decides on pauses, without a clock. Reads an Error's `next` as transport::connect() defines it.
class ReconnectPolicy {
 public:
  /// `chief`: its address, for messages.
  ReconnectPolicy(ReconnectOptions options, std::string chief, Rng jitter)
      : options_(options), chief_(std::move(chief)), jitter_(jitter), next_pause_(options.first_pause) {}

  /// A process that knows the token was reached: from now on refusals without proof are ignored.
  void proven() { proven_ = true; }
  /// The process takes part again: the next loss begins with the first pause.
  void settled();
  /// The pause before the next attempt, or why there will be none.
  Result<Duration> lost(Instant now, const Error& why);

 private:
  ReconnectOptions options_;
  std::string chief_;
  Rng jitter_;
  std::chrono::milliseconds next_pause_;
  bool proven_ = false;
  std::optional<Instant> alone_since_;
  std::optional<Instant> refused_since_;  // without proof, in every attempt since
};

/// Waits and calls on the event loop. Logs each reason once, until another one follows.
class Reconnect {
 public:
  /// `name`: of this process; seeds its jitter.
  Reconnect(boost::asio::io_context& event_loop, const ReconnectOptions& options, std::string name, std::string chief,
            std::function<void(const std::string&)> log);
  Reconnect(const Reconnect&) = delete;
  Reconnect& operator=(const Reconnect&) = delete;
  ~Reconnect() = default;

  void proven() { policy_.proven(); }
  void settled();
  /// Good: `again` is called after a pause, unless cancel() is called. Else the error to end with.
  [[nodiscard]] Outcome lost(const Error& why, std::function<void()> again);
  void cancel() { pause_.cancel(); }

 private:
  std::string name_;
  std::function<void(const std::string&)> log_;
  Clock clock_;
  ReconnectPolicy policy_;
  std::string last_reported_;  // reason
  boost::asio::steady_timer pause_;
  transport::Anchor<Reconnect> anchor_{*this};
};

}  // namespace motley::runtime
