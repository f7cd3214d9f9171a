// How a process goes on without its chief: it tries again with growing pauses, until it has it back, is told for sure that it is not
// wanted, or its patience is over. What anybody on the chief's port may say without knowing the token is no reason to end for who has been
// in.
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
  std::chrono::milliseconds first_pause{100};  // doubles; each is drawn from its upper half, so that a cluster does not come back at once
  std::chrono::milliseconds longest_pause{5'000};
  std::chrono::milliseconds patience{120'000};  // without a chief for so long: give up
  /// Of a process that was never in and is refused. Longer than a chief's port is somebody else's by accident, short enough for a user who
  /// has mistyped a token or a port, and who reads why at once.
  std::chrono::milliseconds first_contact{10'000};
};

/// Decides. Knows no clock. An Error's `next` is read as transport::connect() says it.
class ReconnectPolicy {
 public:
  /// `chief`: where it is looked for.
  ReconnectPolicy(ReconnectOptions options, std::string chief, Rng jitter)
      : options_(options), chief_(std::move(chief)), jitter_(jitter), next_pause_(options.first_pause) {}

  /// Someone was reached who knows the token: from now on refusals without it are passed over.
  void proven() { proven_ = true; }
  /// All is well again: the next loss begins anew.
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
  std::optional<Instant> refused_since_;  // without a proof, one time after the other
};

/// Carries it out on the pump. Sentences go to `log`, each when it is news.
class Reconnect {
 public:
  /// `name`: of this process; its jitter is its own.
  Reconnect(boost::asio::io_context& event_loop, const ReconnectOptions& options, std::string name, std::string chief,
            std::function<void(const std::string&)> log);
  Reconnect(const Reconnect&) = delete;
  Reconnect& operator=(const Reconnect&) = delete;
  ~Reconnect() = default;

  void proven() { policy_.proven(); }
  void settled();
  /// Good: `again` is called after a pause, unless cancel() is. Else what to end with.
  [[nodiscard]] Outcome lost(const Error& why, std::function<void()> again);
  void cancel() { pause_.cancel(); }

 private:
  std::string name_;
  std::function<void(const std::string&)> log_;
  Clock clock_;
  ReconnectPolicy policy_;
  std::string last_reported_;  // last
  boost::asio::steady_timer pause_;
  transport::Anchor<Reconnect> anchor_{*this};
};

}  // namespace motley::runtime
