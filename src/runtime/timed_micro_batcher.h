// Cuts a step with a time limit into micro-batches: half of it first, which surely fits, then small ones until the time is up.
#pragma once
#include <chrono>
#include <cstdint>

#include "runtime/computation.h"
#include "runtime/step_stream.h"
#include "store/replica.h"

namespace motley::runtime {

/// Computing thread only. Time in which the step waited for parameters does not count.
class TimedMicroBatcher final : public store::MicroBatcher {
 public:
  TimedMicroBatcher(Computation& computation, const StepStream& stream) : computation_(computation), stream_(stream), since_(Time::now()) {}
  Piece next(std::uint64_t done, std::uint64_t left) override;

 private:
  using Time = std::chrono::steady_clock;
  Computation& computation_;
  const StepStream& stream_;
  Time::time_point since_;
};

}  // namespace motley::runtime
