// Decides, when contributions contain NaN or infinity, whether one worker is broken or training has diverged.
//
// A worker is broken when more of the others were finite last, on parameters at least as new, than were not. Training has diverged when
// too many contributions in a row were not finite and no other worker is computing a step that could still show the opposite.
#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include "base/ids.h"
#include "protocol/step_table.h"

namespace motley::protocol {

class NonFiniteTracker {
 public:
  enum class Verdict : std::uint8_t { undecided, broken_worker, diverged };

  NonFiniteTracker(std::uint32_t most_of_one, std::uint32_t most_in_a_row) : most_of_one_(most_of_one), most_in_a_row_(most_in_a_row) {}

  void join(WorkerId worker) { workers_[worker]; }
  void leave(WorkerId worker) { workers_.erase(worker); }
  /// `base`: the parameters that the contribution was computed on.
  void on_finite(WorkerId worker, Version base);
  /// `steps`: without the step that was not finite.
  [[nodiscard]] Verdict on_non_finite(WorkerId worker, Version base, const StepTable& steps);

 private:
  struct Worker {
    std::uint32_t in_a_row = 0;
    Version first_base{};                // of the first of those
    std::optional<Version> finite_base;  // of the last finite contribution
  };
  [[nodiscard]] bool others_are_finite(WorkerId worker, const StepTable& steps) const;
  [[nodiscard]] bool others_will_tell(WorkerId worker, const StepTable& steps) const;

  std::uint32_t most_of_one_;
  std::uint32_t most_in_a_row_;
  std::uint32_t in_a_row_ = 0;  // of all workers
  std::map<WorkerId, Worker> workers_;
};

}  // namespace motley::protocol
