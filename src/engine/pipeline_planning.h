// Makes the planner's problem from a job: blocks from the model's profile or a file, devices and links from the cluster.
#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "config/job.h"
#include "engine/training.h"
#include "pipeline/partition.h"
#include "pipeline/problem.h"

namespace motley::engine {

struct PipelinePlan {
  pipeline::Problem problem;
  pipeline::Cut cut;
  std::uint32_t micro_batches = 0;
  double micro_batch = 0;  // samples
  /// An alternative that was considered, and its predicted time.
  struct Rejected {
    std::string what;
    double slot_s = 0;
    std::string why_not;  // a further reason; empty: it fits, but is slower
  };
  std::vector<Rejected> rejected;
};

/// The cluster's nodes as devices, and the links between them.
void add_devices(const cluster::Spec& cluster, pipeline::Problem& problem);

/// Blocks per micro-batch of `samples`; device speeds are samples a second of the whole model, so block times are shares of one sample.
/// Fails when the profile cannot be read or the model cannot be made.
Result<pipeline::Problem> pipeline_problem(const config::Job& job, const Material& material, double samples);

/// The error of a stage (counted from 0) that needs so many bytes.
Error does_not_fit(const config::Job& job, const pipeline::Problem& problem, const pipeline::Stage& stage, std::uint32_t number,
                   double bytes);

/// The cut that the job asks for, or the best one. Fails with the stage and the bytes when nothing fits.
Result<PipelinePlan> plan_pipeline(const config::Job& job, const Material& material);

}  // namespace motley::engine
