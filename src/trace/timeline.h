// The phases of each worker within a window of time; memory is bounded by the window, not by the run.
#pragma once
#include <cstdint>
#include <vector>

#include "trace/activity.h"
#include "trace/event.h"

namespace motley::trace {

class Timeline : public Sink {
 public:
  /// Keeps stretches within [from, from + length).
  Timeline(Instant from, Duration length) : from_(from), to_(from + length) {}
  void on_event(const Event& event) override;

  struct Lane {
    std::uint32_t node = 0;
    std::vector<Stretch> stretches;
  };
  /// In order of joining.
  [[nodiscard]] std::vector<Lane> lanes() const;

 private:
  Instant from_;
  Instant to_;
  Activity activity_;
  Members<Lane> lanes_;
};

}  // namespace motley::trace
