// The job as a stage process needs it, made from the job's text; and one assignment of a stage, as its fields are used.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/device.h"
#include "cluster/spec.h"
#include "pipeline/problem.h"
#include "pipeline/schedule.h"
#include "policy/lr_schedule.h"
#include "store/stage_replica.h"
#include "store/staged_model.h"
#include "transport/options.h"
#include "wire/permissions.h"
#include "wire/pipeline_messages.h"

namespace motley::runtime {

struct StageSetup {
  cluster::Spec cluster;
  NodeId node;                // of this process
  pipeline::Problem problem;  // its links; of blocks and devices only their numbers
  std::optional<policy::LrSchedule> rates;
  store::StageReplicaOptions replica;  // without the fields that depend on the stage
  std::uint64_t mini_batches = 0;
  std::uint64_t snapshot_every = 1;  // mini-batches between two submissions of state to the chief
  std::uint32_t slices = 4;          // at least, of an output or a gradient: the first is sent while the last is copied
  /// Computes one stage of a cut; called on the executor's thread.
  std::function<Result<std::unique_ptr<StageSource>>(const pipeline::Cut&, std::uint32_t stage)> make;
  std::function<store::StagePlace(const pipeline::Cut&, std::uint32_t stage)> place;
  std::optional<cluster::Device> emulated;  // none: the device is real
  transport::JobHash job{};
};
using PrepareStage = std::function<Result<StageSetup>(const std::string& job)>;

/// Why this node must not accept the assignment; none: it may.
[[nodiscard]] wire::Objection objection_to_assignment(const wire::AssignStage& message, const StageSetup& setup);

struct StageAssignment {
  StageAssignment(const wire::AssignStage& assigned, const StageSetup& setup);

  [[nodiscard]] std::uint32_t generation() const { return message.generation; }
  [[nodiscard]] std::uint32_t stage() const { return message.stage; }
  [[nodiscard]] bool is_first() const { return message.stage == 0; }
  [[nodiscard]] bool is_last() const { return message.stage + 1 == cut.size(); }
  /// Of values, first and second moments that the chief sends before the stage can begin, 1 to 3.
  [[nodiscard]] std::uint32_t state_kinds(const StageSetup& setup) const;
  [[nodiscard]] double learning_rate(std::uint64_t mini, const StageSetup& setup) const;

  wire::AssignStage message;
  pipeline::Cut cut;
  pipeline::Schedule schedule;
  store::StagePlace place;
};

}  // namespace motley::runtime
