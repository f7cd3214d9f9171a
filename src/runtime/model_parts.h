// Assembles whole models from the parts that the stages of a pipeline submit: each its values, then its moments, slice after slice. Knows
// no connection.
//
// Rule: at most two models are received at once, since each takes as much memory as the model with its moments: the oldest, which will be
//   whole first, and the newest, which is the last one when training ends. Where links are slow, the models between are dropped.
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

  /// A new layout, with each stage's place in the model. Parts of the layout before are dropped.
  void begin(std::vector<store::StagePlace> places);

  /// The memory that a slice is received into. It stays allocated when the model is dropped meanwhile.
  struct ReceiveBuffer {
    std::span<float> values{};
    std::shared_ptr<store::StagePart> keeps{};  // null: the model was dropped
  };
  /// None: the slice does not follow the stage's last one of this model. The stage must be one of the layout's.
  [[nodiscard]] std::optional<ReceiveBuffer> receive_buffer(const wire::StageSlice& slice, std::size_t bytes);
  /// Whether the model of the slice is still being received.
  [[nodiscard]] bool wants(const wire::StageSlice& slice, const ReceiveBuffer& buffer) const;
  /// The slice, which is wanted, has arrived. True: its model is whole now; older ones are dropped.
  [[nodiscard]] bool received(const wire::StageSlice& slice, const ReceiveBuffer& buffer);
  /// Moves a whole model into `model` and drops older ones. False: it is not there, or not whole.
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
  std::uint64_t newest_ = 0;                // of which anything was received in this layout
};

}  // namespace motley::runtime
