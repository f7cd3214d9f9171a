// A job as the planner sees it: blocks from the model's profile or a file, devices and links from the cluster.
#pragma once
#include <cstdint>
#include <string>

#include "app/job.h"
#include "app/training.h"
#include "base/result.h"
#include "plan/partition.h"
#include "plan/pipeline.h"

namespace motley::app {

struct PipelinePlan {
  plan::Problem problem;
  plan::Cut cut;
  std::uint32_t micro_batches = 0;
  double micro_batch = 0;  // samples
  /// What else was weighed, and what it would cost.
  struct Rejected {
    std::string what;
    double slot_s = 0;
    std::string why_not;  // beside its time; empty: it fits, but is slower
  };
  std::vector<Rejected> rejected;
};

/// The cluster's nodes as devices, and what lies between them.
void add_devices(const cluster::Spec& cluster, plan::Problem& problem);

/// Blocks per micro-batch of `samples`; device speeds are samples a second of the whole model, so block times are shares of one sample.
/// Fails when the profile cannot be read or the model not made.
Result<plan::Problem> pipeline_problem(const Job& job, const Material& material, double samples);

/// The refusal of a stage (counted from 0) that needs so many bytes.
Error does_not_fit(const Job& job, const plan::Problem& problem, const plan::Stage& stage, std::uint32_t number, double bytes);

/// The cut that the job asks for, or the best one. Fails with the stage and the bytes when nothing fits.
Result<PipelinePlan> plan_pipeline(const Job& job, const Material& material);

}  // namespace motley::app
