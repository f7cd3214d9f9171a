// Tuned constants of schedules and replanning.
#pragma once
#include <cstdint>

namespace motley::pipeline {

/// Replanning is considered when the slowest stage takes this many times the mean of all stages.
inline constexpr double replan_unevenness = 1.15;
/// The order of devices is changed when the best cut of the present order has a slot this many times that of the best order.
inline constexpr double reorder_ratio = 1.1;
/// A new cut must shorten the slot by this factor: moving blocks stops the pipeline for a while.
inline constexpr double replan_gain = 1.02;
/// AdaPipe looks at the times of its stages after so many mini-batches.
inline constexpr std::uint32_t replan_interval = 50;

/// Above this jitter of a device, stages hold one micro-batch more than a round trip takes.
inline constexpr double high_jitter = 0.1;
/// Micro-batches beyond a round trip that a stage holds with and without high jitter; rounded up with the round trip.
inline constexpr double spare_with_jitter = 1.5;
inline constexpr double spare = 0.5;

/// Exponent p of the learning rate's factor 1/(1 + d)^p at the beginning, and the share of training in which p falls to 0.
inline constexpr double softening_exponent = 0.5;
inline constexpr double softening_share = 0.25;

}  // namespace motley::pipeline
