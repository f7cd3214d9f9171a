// The part of a pipeline's schedule that its stages need: the chief sends it with an assignment, and the stage machine runs it.
#pragma once
#include <cstdint>
#include <vector>

namespace motley {

struct StageSchedule {
  std::uint32_t micro_batches = 1;           // of one mini-batch, which is one update
  std::vector<std::uint32_t> max_in_flight;  // by stage: micro-batches whose forward has begun and whose input gradient is not done
  std::uint32_t ahead = 0;                   // forward of mini-batch n needs that at most so many before it are not committed here
  bool forwards_first = false;               // no backward before the last forward of its mini-batch
  bool defers_weight_gradients = false;      // weight gradients wait until no other part is ready, at most 2 of them
  bool predicts = false;                     // forwards that run ahead use parameters predicted by momentum
  bool clips = false;                        // each stage clips its gradient at 1.5 times its moving norm
  bool softens = false;                      // the rate is less where updates come late, in the first quarter
};

}  // namespace motley
