// A window of a run as lanes: what each worker did when. Keeps only the window, so long runs cost no memory.
#pragma once
#include <cstdint>
#include <vector>

#include "trace/activity.h"
#include "trace/event.h"

namespace motley::trace {

class Timeline : public Sink {
 public:
  /// Keeps what happens from `from` on until `length` has passed.
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
