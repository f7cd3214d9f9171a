// A whole model, of which each stage of a pipeline has a part: gathers a stage's part and scatters it back. Includes the optimizer's state,
// so that the stage which receives a part continues exactly.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "store/optimizer.h"

namespace motley::store {

/// A stage's values, as runs of the model's: its parameters first, then its statistics.
struct StagePlace {
  struct Piece {
    std::uint64_t in_stage = 0;
    std::uint64_t in_model = 0;
    std::uint64_t count = 0;
  };
  std::vector<Piece> pieces;
  std::uint64_t values = 0;
  std::uint64_t parameters = 0;  // of the values
};

/// A stage's state: its values, and the optimizer's moments of its parameters (empty: none yet, or none of that kind).
struct StagePart {
  std::vector<float> values;
  std::vector<float> first;
  std::vector<float> second;
  std::uint64_t updates = 0;
};

struct StagedModel {
  std::vector<float> values;
  std::vector<float> first;   // optimizer moment, as many as values; empty: no update yet
  std::vector<float> second;  // the same; empty if the optimizer has none
  std::uint64_t updates = 0;

  [[nodiscard]] StagePart part(const StagePlace& place) const;
  void put(const StagePlace& place, const StagePart& part);
};

}  // namespace motley::store
