// The current layout of a pipeline as its chief has assigned it: which node computes which stage, and how far each stage has come.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "protocol/pipeline_chief.h"
#include "store/staged_model.h"
#include "wire/pipeline_messages.h"

namespace motley::runtime {

/// Without stages: nothing is assigned, because too few nodes are there.
struct PipelineLayout {
  std::uint32_t generation = 0;
  pipeline::Cut cut;                      // by stage
  std::vector<store::StagePlace> places;  // by stage: its part of the model
  std::uint32_t micro_batches = 1;        // of a mini-batch
  std::uint64_t allowed = 0;              // mini-batches that may be computed
  std::vector<std::uint64_t> committed;   // by stage: mini-batches

  [[nodiscard]] bool assigned() const { return !cut.empty(); }
  /// The stage that this device computes.
  [[nodiscard]] std::optional<std::uint32_t> stage_of(std::uint32_t device) const;
};

/// The next layout, before any stage has committed more.
[[nodiscard]] PipelineLayout make_layout(const protocol::AssignStages& assignment, std::vector<store::StagePlace> places);

/// The common part of the messages to the stages of one assignment.
struct AssignmentFacts {
  const protocol::AssignStages& assignment;
  const pipeline::Problem& problem;
  std::vector<std::string> addresses;  // by stage: where it listens
  std::vector<std::uint64_t> keys;     // by stage: shared with the next stage
  bool moments = false;                // the optimizer's moments are sent with the values
  Duration trained{};                  // training time now: the clocks of the stages start there
};
[[nodiscard]] wire::AssignStage assign_message(const AssignmentFacts& facts, std::uint32_t stage);

}  // namespace motley::runtime
