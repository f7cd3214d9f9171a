// Whole models out of what the stages of a pipeline hand in: each its values, then its moments, slice after slice. Knows no connection.
//
// Rule: at most two models come in at once, since each takes as much memory as the model with its moments: the oldest, which will be whole
//   first, and the newest, which is the last one when training ends. Where links are slow, those between are left out: never kept.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "store/staged_model.h"
#include "wire/pipeline_messages.h"

namespace motley::runtime {

class ModelParts {
 public:
  static constexpr std::size_t most_models = 2;

  /// `second`: the optimizer has second moments.
  explicit ModelParts(bool second) : second_(second) {}

  /// Another layout, with each stage's place in the model. What came in so far is forgotten.
  void begin(std::vector<store::StagePlace> places);

  /// Where a slice is written until it is here. It keeps its memory, however soon the model is forgotten.
  struct ReceiveBuffer {
    std::span<float> values{};
    std::shared_ptr<store::StagePart> keeps{};  // null: nobody wants it
  };
  /// None: it does not follow what the stage has handed in of this model. The stage must be one of the layout's.
  [[nodiscard]] std::optional<ReceiveBuffer> receive_buffer(const wire::StageSlice& slice, std::size_t bytes);
  /// Whether the model that the slice belongs to is collected still.
  [[nodiscard]] bool wants(const wire::StageSlice& slice, const ReceiveBuffer& landing_buffer) const;
  /// The slice, which is wanted, is here. True: its model is whole now; older ones are forgotten.
  [[nodiscard]] bool received(const wire::StageSlice& slice, const ReceiveBuffer& landing_buffer);
  /// Puts a whole model into `model`, and forgets it and older ones. False: it is not here, or not whole.
  [[nodiscard]] bool put(std::uint64_t mini_batches, store::StagedModel& model);

  [[nodiscard]] std::size_t models() const { return coming_.size(); }

 private:
  struct Coming {
    std::vector<std::shared_ptr<store::StagePart>> parts;  // by stage
    std::vector<std::array<std::uint64_t, 3>> received;    // by stage and wire::StateKind: values
    std::uint64_t missing = 0;                             // values
  };
  [[nodiscard]] Coming* coming(std::uint64_t mini_batches);

  bool second_;
  std::vector<store::StagePlace> places_;   // by stage
  std::map<std::uint64_t, Coming> coming_;  // by mini-batches
  std::uint64_t newest_ = 0;                // that ever began to come in this layout
};

}  // namespace motley::runtime
