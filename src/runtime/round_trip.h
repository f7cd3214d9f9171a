// Measures the time that a message takes to the chief and back: the shortest of several echoes, for any one may wait behind other messages.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "runtime/clock.h"
#include "runtime/peer_connection.h"
#include "wire/message.h"

namespace motley::runtime {

class RoundTrip {
 public:
  static constexpr std::uint32_t echoes = 5;

  /// `chief` outlives this.
  explicit RoundTrip(PeerConnection& chief) : chief_(chief) {}

  void start() { send(); }
  /// The measured time, with the answer to the last echo. Answers out of order are ignored.
  std::optional<Duration> answered(const wire::Echo& echo) {
    if (sent_ == echoes || echo.number != sent_) return std::nullopt;
    shortest_ = std::min(shortest_, clock_.now() - sent_at_);
    if (++sent_ == echoes) return shortest_;
    send();
    return std::nullopt;
  }

 private:
  void send() {
    sent_at_ = clock_.now();
    chief_.send(wire::Echo{sent_});
  }

  PeerConnection& chief_;
  Clock clock_;
  std::uint32_t sent_ = 0;  // the number of the echo whose answer is awaited; `echoes`: of none
  Instant sent_at_{};
  Duration shortest_ = Duration::max();
};

}  // namespace motley::runtime
