#include "policy/strategies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policy/batching/balanced_batching.h"
#include "policy/batching/equal_batching.h"
#include "policy/batching/round_batching.h"
#include "policy/communication/predictive_communication.h"
#include "policy/constants.h"
#include "policy/gate/gate_all.h"
#include "policy/gate/gate_bound.h"
#include "policy/gate/gate_groups.h"
#include "policy/gate/gate_none.h"
#include "policy/gate/gate_states.h"
#include "policy/interval/adaptive_interval.h"

namespace motley::policy {
namespace {

/// The input of a row: the user's settings and the job's facts.
struct StrategyConfig {
  const StrategySpec& spec;
  const JobFacts& job;
  [[nodiscard]] const Knobs& knobs() const { return spec.knobs; }
};

/// One strategy: its properties, the knobs that it takes, and how to build its mechanisms.
struct Row {
  Preset preset;
  std::vector<std::string_view> knobs;
  Mechanisms (*build)(const StrategyConfig& config);
};

// Pieces that rows share ---------------------------------------------------------------------------------------------------------------

std::unique_ptr<BatchingPolicy> equal(const StrategyConfig& config) {
  if (!config.spec.batches.empty()) return std::make_unique<FixedBatching>(config.job.global_batch, config.spec.batches);
  return std::make_unique<EqualBatching>(config.job.global_batch);
}

std::unique_ptr<BatchingPolicy> by_speed(const StrategyConfig& config, BalancedBatching::Options options = {}) {
  if (!config.spec.batches.empty()) return equal(config);
  options.replan = config.knobs().replan.value_or(options.replan);
  return std::make_unique<BalancedBatching>(config.job.global_batch, options);
}

/// Steps end by the clock, unless they must be whole.
bool time_limited(const StrategyConfig& config) { return config.knobs().time_limited.value_or(!config.job.whole_steps); }

/// Fixed bits, or those that are predicted to be best.
std::unique_ptr<CommunicationPolicy> communication(const StrategyConfig& config, const BitsConfig& preset,
                                                   std::optional<std::uint32_t> overlap) {
  const BitsConfig bits = config.knobs().bits.value_or(preset);
  if (!bits.dynamic && overlap == 0U) return std::make_unique<FixedCommunication>(bits.fixed);
  // Free transfers leave little to hide, and a rate that needs a warm-up is at the edge of what the model bears: no late gradients then.
  return std::make_unique<PredictiveCommunication>(PredictiveCommunication::Fixed{
      .bits = bits.dynamic ? std::nullopt : std::optional(bits.fixed), .overlap = overlap, .overlap_free_transfers = !config.job.warms_up});
}

std::unique_ptr<Rule> clipped(const StrategyConfig& config, std::unique_ptr<Rule> rule, double preset) {
  const double multiple = config.knobs().clip.value_or(preset);
  if (multiple > 0) return std::make_unique<RuleClipped>(std::move(rule), multiple);
  return rule;
}

GateStates::Rules rules(const StrategyConfig& config) {
  GateStates::Rules rules;
  const auto off = config.knobs().without;
  rules.bypass_momentum = off != Off::bypass_momentum;
  rules.soften = off != Off::soften;
  rules.compensate = off != Off::compensate;
  rules.look_ahead_more = off != Off::look_ahead;
  rules.hold = off != Off::hold;
  rules.test_alignment = off != Off::test_alignment;
  rules.cancel = off != Off::cancel;
  rules.over_stale_gap = config.knobs().bound_max.value_or(static_cast<std::uint32_t>(rules.over_stale_gap));
  return rules;
}

struct Guards {
  std::uint32_t lookahead = 1;  // Nesterov's method
  double clip = 0;              // 0: never; strategies that allow staleness clip
};

/// Workers send gradients, one step at a time.
Mechanisms gradients(const StrategyConfig& config, std::unique_ptr<BatchingPolicy> batching, std::unique_ptr<Gate> gate,
                     const Guards& guards) {
  Mechanisms m;
  m.batching = std::move(batching);
  m.gate = std::move(gate);
  m.rule = clipped(config, std::make_unique<RuleMean>(config.job.global_batch), guards.clip);
  m.lookahead_terms = config.knobs().lookahead.value_or(guards.lookahead);
  m.momentum = config.knobs().momentum.value_or(config.job.momentum);
  m.traffic = config.job.traffic;
  m.communication = communication(config, {}, 0);
  return m;
}

/// Workers send the change of their local model over several steps. The look-ahead is part of these: parameters are sent as w.
Mechanisms deltas(const StrategyConfig& config, std::unique_ptr<BatchingPolicy> batching, std::unique_ptr<Gate> gate, std::uint32_t steps) {
  Mechanisms m;
  m.batching = std::move(batching);
  m.gate = std::move(gate);
  m.rule = clipped(config, std::make_unique<RuleModelMean>(), 0);
  m.interval = std::make_unique<IntervalFixed>(steps);
  m.momentum = config.knobs().momentum.value_or(config.job.momentum);
  return m;
}

// The table ----------------------------------------------------------------------------------------------------------------------------

const std::vector<Row>& table() {
  static const std::vector<Row> rows{
      {{"bsp", "equal batches; a barrier over all workers; one update by the mean", "staleness 0, the result does not depend on timing",
        "the pace of the slowest worker"},
       {"bits", "lookahead", "clip", "momentum", "lr"},
       [](const StrategyConfig& config) { return gradients(config, equal(config), std::make_unique<GateAll>(), {}); }},
      {{"lb-bsp", "as bsp, but batches by measured speed so that all finish together", "staleness 0",
        "every step still waits for transfers and for outliers"},
       {"replan", "bits", "lookahead", "clip", "momentum", "lr"},
       [](const StrategyConfig& config) { return gradients(config, by_speed(config), std::make_unique<GateAll>(), {}); }},
      {{"asp", "equal batches; applied on arrival; no worker waits", "every device always busy",
        "staleness without bound, about workers-1 versions"},
       {"bits", "lookahead", "clip", "momentum", "lr"},
       [](const StrategyConfig& config) {
         return gradients(config, equal(config), std::make_unique<GateNone>(), {.clip = clipping::stale_multiple});
       }},
      {{"asp-look", "asp whose pulls look four terms of momentum ahead", "every device always busy, staleness partly compensated",
        "staleness without bound"},
       {"bits", "lookahead", "clip", "momentum", "lr"},
       [](const StrategyConfig& config) {
         return gradients(config, equal(config), std::make_unique<GateNone>(),
                          {.lookahead = defaults::lookahead_of_asp_look, .clip = clipping::stale_multiple});
       }},
      {{"ssp", "applied on arrival; at most 3 steps ahead of the slowest", "bounded staleness",
        "the slowest worker's pace in the long run"},
       {"bound", "bits", "lookahead", "clip", "momentum", "lr"},
       [](const StrategyConfig& config) {
         const std::uint32_t bound = config.knobs().bound.value_or(defaults::bound);
         return gradients(config, equal(config), std::make_unique<GateBound>(bound, bound), {.clip = clipping::stale_multiple});
       }},
      {{"dssp", "ssp whose bound moves between 3 and 15 by predicted waiting time", "bounded staleness",
        "the slowest worker's pace in the long run"},
       {"bound", "bound_max", "bits", "lookahead", "clip", "momentum", "lr"},
       [](const StrategyConfig& config) {
         const std::uint32_t lower = config.knobs().bound.value_or(defaults::bound);
         const std::uint32_t upper = config.knobs().bound_max.value_or(defaults::bound_max);
         return gradients(config, equal(config), std::make_unique<GateBound>(lower, upper), {.clip = clipping::stale_multiple});
       }},
      {{"local-sgd", "8 local steps each, then the mean of the models; a barrier over all workers", "an eighth of the messages",
        "models drift apart between means; the slowest worker's pace"},
       {"steps", "clip", "momentum", "lr"},
       [](const StrategyConfig& config) {
         return deltas(config, equal(config), std::make_unique<GateAll>(), config.knobs().steps.value_or(defaults::local_steps));
       }},
      {{"hps", "batches by measured speed, steps that end together, transfers that overlap computation, in as many bits as fit",
        "staleness at most 1, every device busy, no waiting for transfers", "a little sample efficiency where it overlaps"},
       {"replan", "bits", "overlap", "time_limited", "lookahead", "clip", "momentum", "lr"},
       [](const StrategyConfig& config) {
         auto batching = by_speed(config, {.time_limited = time_limited(config), .counts_communication = true});
         Mechanisms m = gradients(config, std::move(batching), std::make_unique<GateAll>(), {.clip = clipping::stale_multiple});
         m.communication = communication(config, {.dynamic = true, .fixed = {}}, config.knobs().overlap);
         return m;
       }},
      {{"adaptive",
        "batches by measured speed; a barrier that stops waiting for stragglers, whose gradients are applied by how far apart the "
        "workers are",
        "no worker waits long for a straggler, no stale gradient enters the momentum",
        "a straggler's gradients count a little less than their samples"},
       {"bound_max", "replan", "bits", "time_limited", "without", "lookahead", "clip", "momentum", "lr"},
       [](const StrategyConfig& config) {
         auto batching = by_speed(config, {.time_limited = time_limited(config), .counts_communication = true});
         Mechanisms m =
             gradients(config, std::move(batching), std::make_unique<GateStates>(rules(config)), {.clip = clipping::stale_multiple});
         m.communication = communication(config, {.dynamic = true, .fixed = {}}, 0);
         return m;
       }},
      {{"grouped",
        "workers of similar speed form groups: a barrier inside a group, nothing between groups; batches by measured speed, a rate "
        "for each group",
        "no worker waits for a much slower one", "staleness of about one version per other group"},
       {"replan", "bits", "time_limited", "without", "lookahead", "clip", "momentum", "lr"},
       [](const StrategyConfig& config) {
         auto batching = by_speed(config, {.time_limited = time_limited(config), .counts_communication = true});
         const auto off = config.knobs().without;
         auto gate = std::make_unique<GateGroups>(GateGroups::Rules{.regroup = off != Off::regroup,
                                                                    .hold = off != Off::hold,
                                                                    .look_ahead_more = off != Off::look_ahead,
                                                                    .rates = off != Off::rates,
                                                                    .turns = off != Off::turns});
         Mechanisms m = gradients(config, std::move(batching), std::move(gate), {.clip = clipping::stale_multiple});
         m.communication = communication(config, {.dynamic = true, .fixed = {}}, 0);
         return m;
       }},
      {{"multistep",
        "rounds of several local steps that end together; the next round runs while the deltas of the last one are sent in few bits, and "
        "the returned mean pulls the local models together",
        "no waiting for transfers, a few percent of the bytes", "models drift apart within a round; one round of staleness"},
       {"steps", "correction", "control_variate", "overlap", "bits", "clip", "momentum", "lr"},
       [](const StrategyConfig& config) {
         std::unique_ptr<BatchingPolicy> batching = std::make_unique<RoundBatching>(config.job.global_batch);
         if (!config.spec.batches.empty()) batching = equal(config);
         Mechanisms m = deltas(config, std::move(batching), std::make_unique<GateAll>(), 1);
         m.interval = std::make_unique<IntervalAdaptive>(config.knobs().steps);
         m.communication = std::make_unique<FixedCommunication>(config.knobs().bits.value_or(BitsConfig{false, {4, 4}}).fixed,
                                                                config.knobs().overlap.value_or(1));
         m.correction = config.knobs().correction.value_or(defaults::correction);
         m.control_variate = config.knobs().control_variate.value_or(false);
         m.traffic = config.job.traffic;
         return m;
       }},
  };
  return rows;
}

const Row* find_row(std::string_view name) {
  const auto row = std::find_if(table().begin(), table().end(), [&](const Row& r) { return r.preset.name == name; });
  return row == table().end() ? nullptr : &*row;
}

void find_stray_knobs(const Row& row, const Knobs& knobs, std::vector<KnobFault>& out) {
  boost::mp11::mp_for_each<boost::describe::describe_members<Knobs, boost::describe::mod_public>>([&](auto member) {
    if (!(knobs.*member.pointer).has_value() || std::find(row.knobs.begin(), row.knobs.end(), member.name) != row.knobs.end()) return;
    out.push_back(
        {member.name, fmt::format("a knob that {} does not take", row.preset.name), fmt::format("one of {}", fmt::join(row.knobs, ", "))});
  });
}

/// The complaint names the end that the user has set; with both set, the upper one.
void find_crossed_bounds(const Knobs& knobs, std::vector<KnobFault>& out) {
  const std::uint32_t lower = knobs.bound.value_or(defaults::bound);
  const std::uint32_t upper = knobs.bound_max.value_or(defaults::bound_max);
  if (lower <= upper) return;
  if (knobs.bound_max)
    out.push_back(
        {"bound_max", fmt::format("{}", upper), fmt::format("at least {}, which is {}bound", lower, knobs.bound ? "" : "the preset of ")});
  else
    out.push_back(
        {"bound", fmt::format("{}", lower), fmt::format("at most {}, which is the preset of bound_max; or set bound_max as well", upper)});
}

/// One field of every row.
template <class T, class Field>
std::vector<T> from_every_row(Field field) {
  std::vector<T> list;
  for (const Row& row : table()) list.push_back(field(row));
  return list;
}

}  // namespace

std::span<const Preset> presets() {
  static const auto list = from_every_row<Preset>([](const Row& row) { return row.preset; });
  return list;
}

std::span<const std::string_view> strategy_names() {
  static const auto list = from_every_row<std::string_view>([](const Row& row) { return row.preset.name; });
  return list;
}

std::vector<KnobFault> knob_faults(const StrategySpec& spec) {
  std::vector<KnobFault> faults;
  const Row* row = find_row(spec.kind);
  if (row == nullptr) return faults;
  find_stray_knobs(*row, spec.knobs, faults);
  if (spec.kind == "dssp") find_crossed_bounds(spec.knobs, faults);
  return faults;
}

Result<Strategy> make_strategy(const StrategySpec& spec, const JobFacts& job) {
  const Row* row = find_row(spec.kind);
  if (row == nullptr)
    return bad_input(fmt::format("strategy \"{}\" is not known; expected one of {}", spec.kind, fmt::join(strategy_names(), ", ")));
  if (const auto faults = knob_faults(spec); !faults.empty())
    return bad_input(
        fmt::format("strategy \"{}\": {}: found {}, expected {}", spec.kind, faults[0].knob, faults[0].found, faults[0].expected));
  Mechanisms mechanisms = row->build({spec, job});
  mechanisms.user_set_bits = spec.knobs.bits.has_value();
  return Strategy(std::move(mechanisms));
}

}  // namespace motley::policy
