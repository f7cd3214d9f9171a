// What a user may say about a strategy: its name and overrides of its mechanisms' knobs. Values only.
#pragma once
#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace motley::policy {

/// Bits per value on the wire, each way. 32 and 16 are floats.
struct Bits {
  std::uint8_t push = 32;
  std::uint8_t pull = 32;
  bool operator==(const Bits&) const = default;
};

/// What a user may wish for: these bits, or whatever is best now.
struct BitsConfig {
  bool dynamic = false;
  Bits fixed;  // when not dynamic
  bool operator==(const BitsConfig&) const = default;
};

/// A rule of a strategy that can be switched off alone, to see what it is worth.
enum class Off : std::uint8_t {
  apart,       // adaptive: stragglers stay out of the momentum
  soften,      // adaptive: and count less the later they are; adapipe: rates are less early on, where updates come late
  compensate,  // adaptive: and are compensated for what has changed
  foresee,     // adaptive, grouped: pulls look further ahead where staleness is expected
  hold,        // adaptive: others wait for who is over-stale; grouped: a group far ahead waits
  judge,       // adaptive: over-stale contributions must go the way of the momentum
  cancel,      // adaptive: over-stale steps are begun again
  regroup,     // grouped: workers change their group when their speed does
  rates,       // grouped: rate and momentum are shared out among the groups
  turns,       // grouped: groups whose values travel at the same time are moved apart
  predict,     // adapipe: forwards that run ahead use where momentum will have led
  clipping,    // adapipe: each stage clips its gradient
  defer,       // adapipe: gradients of weights wait until there is nothing better to do
  replan,      // adapipe: the model is cut anew when a device slows down
  caps         // adapipe: a stage holds as many micro-batches as a round trip takes, not as many as stages come after it
};
BOOST_DESCRIBE_ENUM(Off, apart, soften, compensate, foresee, hold, judge, cancel, regroup, rates, turns, predict, clipping, defer, replan,
                    caps)

/// Every knob is optional: what is absent is what the strategy's preset says.
struct Knobs {
  std::optional<std::uint32_t> steps;          // local steps per round (local-sgd)
  std::optional<std::uint32_t> bound;          // ssp: how many steps ahead of the slowest; dssp: the lower end
  std::optional<std::uint32_t> bound_max;      // dssp: the upper end; adaptive: the gap beyond which a worker is over-stale
  std::optional<std::uint32_t> lookahead;      // terms of rho: 0 heavy ball, 1 Nesterov, more for expected staleness
  std::optional<double> clip;                  // clip a gradient at this multiple of its moving norm; 0: never
  std::optional<double> momentum;              // replaces the optimizer's
  std::optional<double> lr;                    // replaces the optimizer's
  std::optional<std::uint32_t> replan;         // updates between two load plans (lb-bsp, hps)
  std::optional<BitsConfig> bits;              // on the wire
  std::optional<std::uint32_t> overlap;        // hps: 0 or 1 steps of overlap; absent: whatever is predicted to be faster
  std::optional<bool> time_limited;            // steps end when planned, done or not; what is left goes to others
  std::optional<Off> without;                  // adaptive, grouped: this rule is switched off
  std::optional<double> correction;            // multistep: what a worker gives up of its own way when newer parameters come late
  std::optional<bool> control_variate;         // multistep: steps are corrected for shards that are unlike
  std::optional<std::uint32_t> micro_batches;  // pipelines: of one mini-batch
  std::optional<std::string> cut;              // pipelines: "planned" or "uniform"
};
BOOST_DESCRIBE_STRUCT(Knobs, (),
                      (steps, bound, bound_max, lookahead, clip, momentum, lr, replan, bits, overlap, time_limited, without, correction,
                       control_variate, micro_batches, cut))

struct StrategySpec {
  std::string kind = "bsp";
  Knobs knobs;
  std::vector<std::uint32_t> batches;  // fixed batch per worker in the order of joining; empty: the strategy's load decides
};

/// How the learning rate moves over the training. Progress counts samples, so that every strategy sees the same rate after the same
/// samples.
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
