// The streams of one device: what computes, what comes in, what goes out. Work on one waits for work on another only where it is told to,
// and the host only for what it is about to read; nobody ever waits for the whole device. On the CPU there are no streams: everything has
// happened when its call returns.
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
    const c10::impl::VirtualGuardImpl door(device.type());
    streams_.emplace(std::array{door.getStreamFromGlobalPool(device), door.getStreamFromGlobalPool(device, /*isHighPriority=*/true),
                                door.getStreamFromGlobalPool(device, /*isHighPriority=*/true)});
  }

  /// Until it is destroyed, what this thread asks of the device goes to that lane.
  [[nodiscard]] c10::OptionalStreamGuard on(Lane lane) const {
    if (!streams_) return c10::OptionalStreamGuard();
    return c10::OptionalStreamGuard(stream(lane));
  }

  /// All that was asked of every lane is done.
  void settle() const {
    if (!streams_) return;
    for (const c10::Stream& each : *streams_) each.synchronize();
  }

  [[nodiscard]] bool none() const { return !streams_; }
  [[nodiscard]] const c10::Stream& stream(Lane lane) const { return (*streams_)[static_cast<std::size_t>(lane)]; }

 private:
  std::optional<std::array<c10::Stream, 3>> streams_;
};

/// A point in the course of a lane. May be set again and again.
class Mark {
 public:
  explicit Mark(c10::EventFlag flag = c10::EventFlag::PYTORCH_DEFAULT) : flag_(flag) {}
  void set(const Lanes& lanes, Lane lane) {
    if (lanes.none()) return;
    if (!event_) event_.emplace(lanes.stream(lane).device_type(), flag_);
    event_->record(lanes.stream(lane));
  }
  /// The lane goes no further until the mark has been reached.
  void hold(const Lanes& lanes, Lane lane) const {
    if (!lanes.none()) event_->block(lanes.stream(lane));
  }
  /// The same, if it was ever set.
  void hold_if_set(const Lanes& lanes, Lane lane) const {
    if (event_) hold(lanes, lane);
  }
  /// So does the calling thread.
  void wait() {
    if (event_) wait_for(*event_);
  }

 protected:
  [[nodiscard]] const std::optional<c10::Event>& event() const { return event_; }

 private:
  /// Older versions of torch can only be asked.
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

/// Older versions of torch do not tell when an event was reached.
template <class Event>
constexpr bool tells_time = requires(const Event& event) {
  event.elapsedTime(event);
};

/// One whose moment the device takes down.
class TimedMark : public Mark {
 public:
  static constexpr bool tells = tells_time<c10::Event>;
  TimedMark() : Mark(c10::EventFlag::BACKEND_DEFAULT) {}
  /// How much later `later` was reached; 0: sooner. Both were set and have been reached, and it must tell.
  [[nodiscard]] double seconds_until(const TimedMark& later) const {
    constexpr double milliseconds = 1000;  // in a second
    return std::max(0.0, elapsed(*event(), *later.event()) / milliseconds);
  }

 private:
  template <class Event>
  static double elapsed(const Event& from, const Event& to) {
    if constexpr (tells_time<Event>) return from.elapsedTime(to);
    return 0;
  }
};

}  // namespace motley::learn
