// Schedules of a pipeline as data: how many micro-batches a stage may hold, how far forward may run ahead of the updates, which part goes
// first. One stage machine (protocol/stage.h) runs them all.
//
//   naive-mp   one mini-batch, whole, goes through all stages and back before the next begins
//   gpipe      M micro-batches, all forwards before the first backward, an update after the last, no forward ahead of it
//   1f1b       the same updates; backward as soon as it can be, so that stage s of P holds at most P - s
//   pipedream  every mini-batch (or micro-batch, as unit) is an update of its own; stage s runs up to P - 1 - s updates ahead
//   2bw        1f1b that runs one mini-batch ahead of the updates, so that two versions of the parameters are in use and the pipeline never
//   drains adapipe    M micro-batches, at most one mini-batch ahead of the updates (so a delay of at most 1), backward first, the gradient
//   of the
//              weights when no other part is ready, and as many micro-batches held as a round trip takes
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/stage_schedule.h"
#include "pipeline/problem.h"

namespace motley::pipeline {

/// The parts of a stage's work on one micro-batch: forward, gradient of the inputs, gradient of the weights.
enum class Part : std::uint8_t { forward, input, weight };

struct Schedule : StageSchedule {
  std::string name;
  std::uint32_t replan_every = 0;  // mini-batches between two calls of pipeline/replan.h; 0: never
};

struct ScheduleOptions {
  std::string_view name = "adapipe";
  std::uint32_t micro_batches = 8;  // asked for; naive-mp and pipedream have one
  double jitter = 0;                // of the devices, the largest: a stage holds one more when times are uncertain
};

[[nodiscard]] std::span<const std::string_view> schedule_names();

/// Most bytes that each stage keeps beside its parameters: activations of the micro-batches that it may hold or whose weight gradients
/// wait, and each version of its parameters beside the newest that forwards may have used.
[[nodiscard]] std::vector<double> stash_of(const Schedule& schedule, const Problem& problem, const Cut& cut);

/// All memory of each stage: the same, and four times its parameters.
[[nodiscard]] std::vector<double> memory_of(const Schedule& schedule, const Problem& problem, const Cut& cut);

/// The factor of a stage's learning rate at this update of `mini_batches`: 1/(1 + d)^p where the schedule softens. d is the share of its
/// micro-batches that come late, min(M, held - 1)/M; p goes from .5 to 0 in the first quarter of training.
[[nodiscard]] double softening(const Schedule& schedule, std::uint32_t stage, std::uint64_t mini, std::uint64_t mini_batches);

/// Must be one of the names.
[[nodiscard]] Schedule make_schedule(const ScheduleOptions& options, const Problem& problem, const Cut& cut);

}  // namespace motley::pipeline
