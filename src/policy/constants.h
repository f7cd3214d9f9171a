// The tuned constants of all strategies, by mechanism. Each has its unit, the reason for its value or the page where it was measured, and,
// where it was measured or follows from the formula, what half and double of it do. Exact values of algorithms (such as 1/2) are not here.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "policy/spec.h"

namespace motley::policy {

/// The affine fit of a worker's step time (policy/monitor.h).
namespace speed_fit {
/// Weight of an observation against the next one: a memory of about 10 steps. sqrt(0.9) remembers 20 steps, 0.9^2 remembers 5.
inline constexpr double forgetting = 0.9;
/// Variance of the batch sizes over the squared mean, below which noise in the times would be read as overhead: sizes within 5 %.
inline constexpr double least_relative_variance = 0.05 * 0.05;
/// Steps times relative variance of their sizes: the device's own measurement counts as ten steps, half of them of twice the other size.
inline constexpr double prior_evidence = 10.0 / 9;
/// Times. A step at a familiar size that differs by more than this is a change of the device's speed, not jitter (docs/decisions/5).
inline constexpr double jump = 1.6;
/// Observations before the fit is good enough to tell jitter from ignorance.
inline constexpr std::uint64_t settled = 6;
/// Relative difference of a batch from the last one up to which its time is predicted well, whatever fixed and per-sample cost are.
inline constexpr double alike = 0.25;
/// Standard deviation over mean absolute deviation of a normal distribution.
inline constexpr double deviation_of_mean = 1.25;
/// The most of a step's time that may be fixed cost: the time per sample stays above 0.
inline constexpr double most_fixed = 0.9;
}  // namespace speed_fit

/// Transfer times and the cost of new batch sizes (policy/monitor.h).
namespace monitoring {
/// Weight of the newest transfer in the moving mean: about 5 transfers.
inline constexpr double newest_transfer = 0.2;
/// The least part of a measured transfer that is the link's time, however long coding may take.
inline constexpr double least_link_part = 0.02;
/// Weight of the newest first step of a size in the cost of a new size: there are few of them.
inline constexpr double newest_new_size = 0.5;
}  // namespace monitoring

/// How much of a worker's claim about its compute time is believed (policy/credible_compute.h; tests/claims_test.cpp).
namespace credibility {
/// Messages take at most half of the time that the chief cannot explain otherwise.
inline constexpr int most_messages = 2;
/// Computing is at least an eighth of a step: a worker that claims none seems at most eight times as fast as it is.
inline constexpr int most_waiting = 8;
}  // namespace credibility

/// Batches by measured speed (policy/batching/balanced_batching.h).
namespace balancing {
/// Relative change of some worker's batch below which a new plan is not adopted.
inline constexpr double dead_band = 0.05;
/// Times that a step must end sooner before a device meets new batch sizes, where steps are steady, and where they are not.
inline constexpr double worth_it = 1.005;
inline constexpr double worth_it_uneven = 1.02;
/// Of the cost of the new sizes: a plan is adopted once the old one has lost this much. Rent or buy: at 1 the total is at most twice that
/// of knowing the future; a training is long, so half of it is lost before.
inline constexpr double replan_threshold = 0.5;
/// Part of the accumulated loss that stays after an update without loss: step times are noisy.
inline constexpr double loss_decay = 0.9;
/// Weight of the newest update in the moving mean of a worker's systematic delay: about 10 updates.
inline constexpr double newest_delay = 0.1;
/// Of a step: the most that a delay counts.
inline constexpr double most_delay = 0.3;
/// Of a step in one piece: the most that is believed to be fixed cost, as the times of a few sizes tell it badly.
inline constexpr double most_fixed = 0.5;
/// Jitter (relative standard deviation) up to which a cluster counts as steady.
inline constexpr double steady = 0.02;
/// Of the planned time: when a time-limited step ends on a steady cluster (docs/decisions/6).
inline constexpr double surprise = 1.2;
/// Spare samples of a time-limited step: standard deviations of its time, and the most, of the batch.
inline constexpr double spare_per_jitter = 3;
inline constexpr double most_spare = 0.5;
/// Looks at the clock within one batch: a step ends within a sixteenth of the planned moment.
inline constexpr std::uint32_t micro_batches = 16;
}  // namespace balancing

/// Rounds of local steps of unequal number (policy/batching/round_batching.h).
namespace local_rounds {
/// Samples: smaller local batches cost accuracy, and time where a step has a fixed cost (docs/results/multistep.md).
inline constexpr std::uint32_t least_local_batch = 64;
/// Of the local batch: between these lies every correction that rounding to whole steps can ask for.
inline constexpr double least_evened = 0.6;
inline constexpr double most_evened = 1.5;
/// Samples that rounding may carry over to the next round, for workers without a batch multiple.
inline constexpr double most_owed = 32;
/// Relative difference from the usual batch of a device with a batch multiple above which it takes a new size.
inline constexpr double other_size = 0.2;
/// Of a round: being earlier or later than the mean by less is not corrected.
inline constexpr double tolerance = 0.1;
/// Part of a delay that the next round corrects: one more round is in flight by then, and larger corrections would oscillate.
inline constexpr double correction = 0.25;
/// Of a round: the largest correction.
inline constexpr double most_corrected = 0.2;
}  // namespace local_rounds

/// When training turns for the worse (policy/communication/divergence_detector.h).
namespace divergence {
/// Weights of the newest update in the fast and the slow moving mean: about 20 and 200 updates.
inline constexpr double fast = 0.05;
inline constexpr double slow = 0.005;
/// Updates before the moving means are judged.
inline constexpr std::uint64_t enough = 50;
/// Times its lowest value: the mean loss that counts as divergence.
inline constexpr double climbed = 1.2;
/// Times the lowest mean: the loss of one update that counts as a spike, the updates before there are any, and the spikes in a row that
/// count as divergence.
inline constexpr double spikes = 1.5;
inline constexpr std::uint64_t enough_to_spike_from = 20;
inline constexpr std::uint32_t no_accident = 3;
/// Times its slow mean: the mean norm of gradients that counts as divergence.
inline constexpr double grown = 2;
}  // namespace divergence

/// Bits and overlap by prediction (policy/communication/predictive_communication.h).
namespace prediction {
/// Bits per value, push and pull, and the progress of a sample at each relative to fp32 (docs/results/hps.md).
inline constexpr std::array<Bits, 4> all_levels{Bits{32, 32}, Bits{16, 16}, Bits{8, 8}, Bits{4, 8}};
inline constexpr std::array<double, 4> efficiencies{1, 1, 0.998, 0.99};
/// Progress of a sample that is one version late (docs/results/hps.md).
inline constexpr double efficiency_of_overlap = 0.92;
/// Part of a step's computation under which transfers hide: one that was measured alone takes longer when all workers transfer at once.
inline constexpr double hidden = 0.7;
/// Times that another choice must be better: no change back and forth within the noise.
inline constexpr double better = 1.03;
/// Updates between two decisions.
inline constexpr std::uint64_t decide_every = 10;
/// Parts of training, and updates, without overlap: at the beginning losses change too fast to be judged, at the end every update counts.
inline constexpr double first_part = 0.01;
inline constexpr double last_part = 0.97;
inline constexpr std::uint64_t least_updates = 20;
/// Updates without overlap after a divergence, and their limit after doubling.
inline constexpr std::uint64_t retry_after_divergence = 100;
inline constexpr std::uint64_t max_retry_delay = 1'000'000;
/// Of the learning rate at which overlap diverged: below it overlap is tried again.
inline constexpr double retry_lr = 0.25;
/// |residual| / |contribution| above which error feedback falls behind, and the updates that a worker then has more bits.
inline constexpr double large_residual = 0.5;
inline constexpr std::uint64_t retry_after_residual = 100;
}  // namespace prediction

/// The number of local steps between updates (policy/interval/adaptive_interval.h; docs/results/multistep.md).
namespace intervals {
/// Parts of training in which rounds do not overlap: before the first, after the last.
inline constexpr double first_part = 0.01;
inline constexpr double last_part = 0.995;
/// Times the local steps so far that a round may have in the first part.
inline constexpr double growth = 4;
/// Part of training before which nothing is judged.
inline constexpr double settled = 0.05;
/// Local steps: the most, and the usual number.
inline constexpr double most_steps = 32;
inline constexpr double nominal = 12;
/// Times its mean: the disagreement of local models that halves the interval.
inline constexpr double jump = 1.5;
/// Weight of the mean against the newest round: about 10 and 50 rounds.
inline constexpr double forgetting = 0.9;
inline constexpr double slow_forgetting = 0.98;
/// Rounds between two steps of growth.
inline constexpr std::uint32_t rounds_to_grow = 8;
/// Updates whose norm may still be reported.
inline constexpr std::size_t spreads_kept = 8;
}  // namespace intervals

/// Stragglers (policy/gate/stragglers.h; docs/results/adaptive.md).
namespace straggling {
/// Median steps: late, if the worker has fallen behind; very late, whether or not it has.
inline constexpr double late = 1.3;
inline constexpr double very_late = 4 * late;
/// Versions: the bounds of the threshold of the gap.
inline constexpr std::uint64_t least_threshold = 2;
inline constexpr std::uint64_t most_threshold = 8;
/// Contributions in time, in a row, after which a worker straggles no more.
inline constexpr std::uint32_t enough_in_time = 3;
}  // namespace straggling

/// The gate `states` (policy/gate/gate_states.h; docs/results/adaptive.md).
namespace state_gate {
/// A late contribution counts 1/(1 + 0.25 * (staleness - 1)).
inline constexpr double soften_per_version = 0.25;
/// Looks for stragglers per median step, at most, when nothing happens.
inline constexpr int looks_per_step = 10;
/// Of the workers: looks are at least this part of their contributions apart.
inline constexpr std::uint64_t contributions_per_look = 8;
/// Median steps: an over-stale worker that is expected within them is not cancelled.
inline constexpr double soon = 0.5;
}  // namespace state_gate

/// Groups of workers of similar speed (policy/gate/groups.h, gate_groups.h; docs/results/grouped.md).
namespace grouping {
/// Steps of each worker before the first grouping.
inline constexpr std::uint64_t profile_steps = 10;
inline constexpr std::uint32_t most_groups = 4;
/// Fastest over slowest member of a group.
inline constexpr double most_spread = 2.1;
/// Changes of a worker's speed relative to its group's beyond which it is regrouped, the steps that they must last, and the steps between
/// two groupings.
inline constexpr double least_drift = 0.7;
inline constexpr double most_drift = 1.4;
inline constexpr std::uint32_t patience = 20;
inline constexpr std::uint64_t rest = 100;
/// Throughput that one more group must bring: its staleness costs about a tenth of the sample efficiency.
inline constexpr double price_of_a_group = 0.1;
/// Updates per group that a group may be ahead of the slowest one.
inline constexpr std::uint64_t lead_per_group = 4;
/// Weight of the newest update in the moving mean of a group's staleness.
inline constexpr double newest_staleness = 0.1;
/// Rounds that begin within a sixth of a step of each other share the links; so many in a row move a group apart.
inline constexpr int parts_of_a_step = 6;
inline constexpr std::uint32_t most_collisions = 3;
}  // namespace grouping

/// Rules (policy/rule/rule.h; docs/decisions/4).
namespace clipping {
/// Weight of the moving norm against the newest one: about 20 contributions.
inline constexpr double forgetting = 0.95;
inline constexpr double newest = 0.05;  // 1 - forgetting
/// Times the moving norm at which strategies with stale gradients clip.
inline constexpr double stale_multiple = 1.5;
}  // namespace clipping

/// The rest of a strategy (policy/strategy.h, policy/strategies.cpp).
namespace defaults {
/// Weight of the newest gradient in the moving mean square that delay compensation divides by: about 20 contributions.
inline constexpr double newest_square = 0.05;
/// lambda_0 of delay compensation (Zheng et al. 2017).
inline constexpr double compensation = 2;
/// Of the workers: plans cost O(P log P), so they are made when this part of the workers has contributed.
inline constexpr std::uint64_t contributions_per_plan = 8;
/// Local steps: rounds this long need all of the correction, shorter ones proportionally less (docs/results/multistep.md).
inline constexpr double long_round = 16;
/// Part of a worker's own delta that it gives up when newer parameters come late. Time to the target on 4421-heavy: 40.2 s; 39.5 s at 0,
/// 42.5 s at 0.5, 44.8 s at 1 (docs/results/multistep.md, which has longer rounds too).
inline constexpr double correction = 0.25;
/// Steps: ssp's bound, and the upper bound of dssp.
inline constexpr std::uint32_t bound = 3;
inline constexpr std::uint32_t bound_max = 15;
/// Local steps of local-sgd.
inline constexpr std::uint32_t local_steps = 8;
/// Terms of momentum that asp-look looks ahead.
inline constexpr std::uint32_t lookahead_of_asp_look = 4;
}  // namespace defaults

}  // namespace motley::policy
