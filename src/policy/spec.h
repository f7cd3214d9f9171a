// The user's settings of a strategy: its name and overrides of its mechanisms' knobs. Values only.
#pragma once
#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace motley::policy {

/// Bits per sent value, each way. 32 and 16 are floats.
struct Bits {
  std::uint8_t push = 32;
  std::uint8_t pull = 32;
  bool operator==(const Bits&) const = default;
};

/// The user's setting of bits: fixed, or those that are predicted to be best.
struct BitsConfig {
  bool dynamic = false;
  Bits fixed;  // when not dynamic
  bool operator==(const BitsConfig&) const = default;
};

/// A rule of a strategy that can be switched off alone, to measure its effect.
enum class Off : std::uint8_t {
  bypass_momentum,  // adaptive: contributions of stragglers are applied past the momentum
  soften,           // adaptive: they count less the staler they are; adapipe: rates are lower early on, where updates are late
  compensate,       // adaptive: they are compensated for the change since their base
  look_ahead,       // adaptive, grouped: pulls look further ahead where staleness is expected
  hold,             // adaptive: others wait for an over-stale worker; grouped: a group far ahead waits
  test_alignment,   // adaptive: over-stale contributions must be aligned with the momentum
  cancel,           // adaptive: over-stale steps are cancelled
  regroup,          // grouped: workers change their group when their speed does
  rates,            // grouped: rate and momentum are divided among the groups
  turns,            // grouped: groups whose transfers collide are moved apart
  predict,          // adapipe: forward passes that run ahead use parameters predicted from the momentum
  clipping,         // adapipe: each stage clips its gradient
  defer,            // adapipe: gradients of weights are computed when the stage would otherwise idle
  replan,           // adapipe: the model is partitioned again when a device slows down
  caps              // adapipe: a stage holds as many micro-batches as a round trip takes, not one per later stage
};
BOOST_DESCRIBE_ENUM(Off, bypass_momentum, soften, compensate, look_ahead, hold, test_alignment, cancel, regroup, rates, turns, predict,
                    clipping, defer, replan, caps)

/// All knobs are optional: the strategy's preset applies where one is absent.
struct Knobs {
  std::optional<std::uint32_t> steps;          // local steps per round (local-sgd)
  std::optional<std::uint32_t> bound;          // ssp: how many steps ahead of the slowest; dssp: the lower end
  std::optional<std::uint32_t> bound_max;      // dssp: the upper end; adaptive: the gap beyond which a worker is over-stale
  std::optional<std::uint32_t> lookahead;      // terms of rho: 0 heavy ball, 1 Nesterov, more for expected staleness
  std::optional<double> clip;                  // clip a gradient at this multiple of its moving norm; 0: never
  std::optional<double> momentum;              // replaces the optimizer's
  std::optional<double> lr;                    // replaces the optimizer's
  std::optional<std::uint32_t> replan;         // updates between two load plans (lb-bsp, hps)
  std::optional<BitsConfig> bits;              // per sent value
  std::optional<std::uint32_t> overlap;        // hps: 0 or 1 steps of overlap; absent: predicted
  std::optional<bool> time_limited;            // steps end at the planned time; the rest returns to the pool
  std::optional<Off> without;                  // adaptive, grouped: this rule is switched off
  std::optional<double> correction;            // multistep: the part of its delta that a worker gives up for late parameters
  std::optional<bool> control_variate;         // multistep: steps are corrected for unlike shards
  std::optional<std::uint32_t> micro_batches;  // pipelines: of one mini-batch
  std::optional<std::string> cut;              // pipelines: "planned" or "uniform"
};
BOOST_DESCRIBE_STRUCT(Knobs, (),
                      (steps, bound, bound_max, lookahead, clip, momentum, lr, replan, bits, overlap, time_limited, without, correction,
                       control_variate, micro_batches, cut))

struct StrategySpec {
  std::string kind = "bsp";
  Knobs knobs;
  std::vector<std::uint32_t> batches;  // fixed batch per worker in the order of joining; empty: the batching policy decides
};

/// The learning rate over the training. Progress counts samples, so that every strategy has the same rate after the same samples.
struct LrScheduleSpec {
  enum class Kind { constant, step, cosine };
  Kind kind = Kind::constant;
  double lr = 0.02;
  double warmup = 0;             // linear, in units of global batches
  double step_every_epochs = 1;  // step: multiply by step_factor each time
  double step_factor = 0.1;
  double final_fraction = 0;  // cosine: ends at lr * this
};

}  // namespace motley::policy
