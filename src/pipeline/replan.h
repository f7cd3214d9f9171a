// Decides from recent times of the stages whether a running pipeline should be partitioned anew.
//
// Rule (constants.h): when the slowest stage takes more than 1.15 times the mean, take the measured speeds and find the best cut for the
// same
//   order of devices; if its slot is more than 1.1 times that of the best order, take the best order. Move when the slot shrinks by more
//   than 2 %.
#pragma once
#include <optional>
#include <span>

#include "pipeline/problem.h"

namespace motley::pipeline {

struct Replanned {
  Cut cut;
  Problem problem;      // with the speeds that were measured
  double before_s = 0;  // slot, at those speeds
  double after_s = 0;
};

/// `stage_s`: time of one micro-batch on each stage, all three parts. None: keep the cut; also when a value is not a time.
[[nodiscard]] std::optional<Replanned> replan(const Problem& problem, const Cut& cut, std::span<const double> stage_s);

/// Seconds until every moved block has arrived on its new device: parameters and momentum, each link by itself.
[[nodiscard]] double move_s(const Problem& problem, const Cut& from, const Cut& to);

}  // namespace motley::pipeline
