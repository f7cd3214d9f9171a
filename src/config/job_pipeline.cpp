// [pipeline]: how a model is cut across the nodes and how micro-batches go through the pieces.
#include <array>

#include "config/job_sections.h"

namespace motley::config {
namespace {

using namespace std::string_view_literals;

constexpr std::array cut_names{"planned"sv, "uniform"sv};

}  // namespace

void read_pipeline(Reader section, Job& job) {
  PipelineSpec& spec = job.pipeline;
  section.choice("cut", spec.cut, cut_names);
  section.integer("stages", spec.stages, between(1, 1e6), "how many at most; nodes beyond stay unused");
  section.integers("boundaries", spec.boundaries, between(1, 1e6), 1000, "the first block of each stage after the first, nodes in order");
  for (std::size_t i = 1; i < spec.boundaries.size(); ++i)
    if (spec.boundaries[i] <= spec.boundaries[i - 1]) {
      section.complain("boundaries", "numbers that ascend: no stage may be empty");
      break;
    }
  section.integer("micro_batches", spec.micro_batches, between(1, 4096),
                  "micro-batches of one global batch; default: four for each node, two where a device's overhead makes that slower");
  if (spec.micro_batches > job.global_batch)
    section.complain_found("micro_batches", std::to_string(spec.micro_batches),
                           "at most " + std::to_string(job.global_batch) + " (batch.global: a micro-batch has a sample at least)");
  section.integer("slices", spec.slices, between(1, 1024), "pieces in which a micro-batch's outputs and gradients travel");
  std::string profile;
  section.text(
      "profile", profile,
      "a file with a [[block]] for each block of the model, \"measured\" on the spot, or \"equal\": instead of counting its arithmetic");
  spec.profile = profile;
  section.finish();
}

}  // namespace motley::config
