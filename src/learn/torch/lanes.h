// The streams of one device: one computes, one copies from the host (in), one copies to the host (out). Work on one stream waits for
// another only at a Mark, and the host waits only for the data that it is about to read. On the CPU there are no streams: every call is
// synchronous.
#pragma once
#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

namespace motley::learn {

enum class Lane { compute, in, out };

class Lanes {
 public:
  explicit Lanes(at::Device device) {
    if (device.is_cpu()) return;
    const c10::impl::VirtualGuardImpl streams(device.type());
    streams_.emplace(std::array{streams.getStreamFromGlobalPool(device), streams.getStreamFromGlobalPool(device, /*isHighPriority=*/true),
                                streams.getStreamFromGlobalPool(device, /*isHighPriority=*/true)});
  }

  /// Until the guard is destroyed, operations of this thread go to that lane.
  [[nodiscard]] c10::OptionalStreamGuard on(Lane lane) const {
    if (!streams_) return c10::OptionalStreamGuard();
    return c10::OptionalStreamGuard(stream(lane));
  }

  /// Waits until every lane has finished all its work.
  void settle() const {
    if (!streams_) return;
    for (const c10::Stream& each : *streams_) each.synchronize();
  }

  [[nodiscard]] bool none() const { return !streams_; }
  [[nodiscard]] const c10::Stream& stream(Lane lane) const { return (*streams_)[static_cast<std::size_t>(lane)]; }

 private:
  std::optional<std::array<c10::Stream, 3>> streams_;
};

/// A point in the work of a lane (an event of CUDA). May be set any number of times.
class Mark {
 public:
  explicit Mark(c10::EventFlag flag = c10::EventFlag::PYTORCH_DEFAULT) : flag_(flag) {}
  void set(const Lanes& lanes, Lane lane) {
    if (lanes.none()) return;
    if (!event_) event_.emplace(lanes.stream(lane).device_type(), flag_);
    event_->record(lanes.stream(lane));
  }
  /// The lane does none of its later work until the mark is reached.
  void hold(const Lanes& lanes, Lane lane) const {
    if (!lanes.none()) event_->block(lanes.stream(lane));
  }
  /// The same, if the mark was ever set.
  void hold_if_set(const Lanes& lanes, Lane lane) const {
    if (event_) hold(lanes, lane);
  }
  /// The calling thread waits until the mark is reached.
  void wait() {
    if (event_) wait_for(*event_);
  }

 protected:
  [[nodiscard]] const std::optional<c10::Event>& event() const { return event_; }

 private:
  /// Torch 1.13 can only be polled.
  template <class Event>
  static void wait_for(Event& event) {
    if constexpr (requires { event.synchronize(); })
      event.synchronize();
    else
      while (!event.query()) std::this_thread::yield();
  }
  c10::EventFlag flag_;
  std::optional<c10::Event> event_;
};

/// Torch 1.13 does not tell when an event was reached.
template <class Event>
constexpr bool has_elapsed_time = requires(const Event& event) {
  event.elapsedTime(event);
};

/// A mark of which the device records the time.
class TimedMark : public Mark {
 public:
  static constexpr bool records_time = has_elapsed_time<c10::Event>;
  TimedMark() : Mark(c10::EventFlag::BACKEND_DEFAULT) {}
  /// Seconds from this mark to `later`; 0 if that was reached earlier. Both have been reached, and `records_time` is true.
  [[nodiscard]] double seconds_until(const TimedMark& later) const {
    constexpr double milliseconds = 1000;  // in a second
    return std::max(0.0, elapsed(*event(), *later.event()) / milliseconds);
  }

 private:
  template <class Event>
  static double elapsed(const Event& from, const Event& to) {
    if constexpr (has_elapsed_time<Event>) return from.elapsedTime(to);
    return 0;
  }
};

}  // namespace motley::learn
