// Drives the chief's state machine in real time: tells it the time, wakes it when it asks, tells it when the process itself stood still,
// and records its inputs for replay.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "protocol/chief.h"
#include "runtime/alarm.h"
#include "runtime/clock.h"
#include "runtime/inputs.h"
#include "runtime/pause_detector.h"

namespace motley::runtime {

/// Event-loop thread only.
class ChiefMachine {
 public:
  struct Callbacks {
    std::function<void(const protocol::ChiefAction&)> carry_out;
    std::function<void(Duration)> paused;                    // nothing was received for so long, for a reason of this process
    std::function<void(std::span<const std::byte>)> record;  // the inputs; may be empty
  };
  /// The event loop is expected to call tell() twice in each `heartbeat`.
  ChiefMachine(boost::asio::io_context& event_loop, protocol::Chief chief, Duration heartbeat, const protocol::ChiefOptions& options,
               Callbacks callbacks);

  /// Steps the machine and carries out its actions, unless it was stopped. An action may tell it more.
  void tell(const protocol::ChiefEvent& event);
  void wake_at(Instant when) { alarm_.at(when); }
  /// It receives nothing more: the recording is complete.
  void stop();

  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] const protocol::Chief& chief() const { return chief_; }
  [[nodiscard]] Instant now() const { return clock_.now(); }
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  void step(Instant now, const protocol::ChiefEvent& event);

  Callbacks callbacks_;
  Clock clock_;
  PauseDetector pauses_;
  protocol::Chief chief_;
  std::optional<Recorder> recorder_;
  Alarm alarm_;  // at the time that the strategy asked for
  std::uint64_t events_ = 0;
  bool stopped_ = false;
};

}  // namespace motley::runtime
