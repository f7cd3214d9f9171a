// Whether a running pipeline should be cut anew, from what its stages took lately.
//
// Rule: where the slowest stage takes more than 1.15 times the mean, devices are taken to be as fast as they were measured, and the best
// cut
//   for the same order of devices is looked for; if even that is more than 1.1 times what the best order would allow, the best order. It is
//   worth its trouble when a micro-batch comes out more than 2 % sooner.
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

/// `stage_s`: what one micro-batch took on each stage, all three parts. None: stay; so it is where one of them is no time.
[[nodiscard]] std::optional<Replanned> replan(const Problem& problem, const Cut& cut, std::span<const double> stage_s);

/// Seconds until every moved block has reached its new device: parameters and momentum, each way by itself. What stays where it is costs
/// nothing.
[[nodiscard]] double move_s(const Problem& problem, const Cut& from, const Cut& to);

}  // namespace motley::pipeline
