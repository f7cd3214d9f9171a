// [pipeline]: how a model is cut across the nodes and how many micro-batches are in flight.
#include <array>

#include "config/job_sections.h"

namespace motley::config {
namespace {

using namespace std::string_view_literals;

constexpr std::array cut_names{"planned"sv, "uniform"sv};

}  // namespace

void read_pipeline(Reader section, Job& job) {
  PipelineSpec& spec = job.pipeline;
  section.choice("cut", spec.cut, cut_names,
                 "planned: balances the predicted time of the stages; uniform: the same number of blocks for each stage");
  section.integer("stages", spec.stages, between(1, 1e6),
                  "the largest number of stages; further nodes stay unused; default: one stage for each node");
  section.integers("boundaries", spec.boundaries, between(1, 1e6), 1000,
                   "a manual cut: the first block of each stage after the first, in the order of the nodes");
  for (std::size_t i = 1; i < spec.boundaries.size(); ++i)
    if (spec.boundaries[i] <= spec.boundaries[i - 1]) {
      section.complain("boundaries", "ascending numbers: no stage may be empty");
      break;
    }
  section.integer("micro_batches", spec.micro_batches, between(1, 4096),
                  "micro-batches of one global batch; default: four for each node, or two where the devices' overhead makes four slower");
  if (spec.micro_batches > job.global_batch)
    section.complain_found("micro_batches", std::to_string(spec.micro_batches),
                           "at most " + std::to_string(job.global_batch) + " (batch.global: a micro-batch has at least one sample)");
  section.integer("slices", spec.slices, between(1, 1024), "pieces in which the activations and gradients of a micro-batch are sent");
  std::string profile;
  section.text(
      "profile", profile,
      "cost of the model's blocks: a file with a [[block]] for each, \"measured\" at the start, or \"equal\"; default: their arithmetic is "
      "counted");
  spec.profile = profile;
  section.finish();
}

}  // namespace motley::config
