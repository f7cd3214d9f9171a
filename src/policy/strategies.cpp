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

#include "policy/gate_all.h"
#include "policy/gate_bound.h"
#include "policy/gate_groups.h"
#include "policy/gate_none.h"
#include "policy/gate_states.h"
#include "policy/interval_adaptive.h"
#include "policy/load_equal.h"
#include "policy/load_finish_together.h"
#include "policy/load_rounds.h"
#include "policy/travel_predicted.h"

namespace motley::policy {
namespace {

/// What a row is built from: the user's word and the job's.
struct Wish {
  const StrategySpec& spec;
  const Setting& setting;
  [[nodiscard]] const Knobs& knobs() const { return spec.knobs; }
};

/// One strategy: what it promises, the knobs it takes, how its mechanisms are put together.
struct Row {
  Preset preset;
  std::vector<std::string_view> knobs;
  Mechanisms (*build)(const Wish& wish);
};

// Pieces that rows share ---------------------------------------------------------------------------------------------------------------

std::unique_ptr<Load> equal(const Wish& wish) {
  if (!wish.spec.batches.empty()) return std::make_unique<LoadFixed>(wish.setting.global_batch, wish.spec.batches);
  return std::make_unique<LoadEqual>(wish.setting.global_batch);
}

std::unique_ptr<Load> by_speed(const Wish& wish, LoadFinishTogether::How how = {}) {
  if (!wish.spec.batches.empty()) return equal(wish);
  how.replan = wish.knobs().replan.value_or(how.replan);
  return std::make_unique<LoadFinishTogether>(wish.setting.global_batch, how);
}

/// Steps end by the clock, unless they must be whole.
bool boxed(const Wish& wish) { return wish.knobs().box.value_or(!wish.setting.whole_steps); }

/// Fixed bits, or whatever is predicted to be best.
std::unique_ptr<Travel> travel(const Wish& wish, const BitsWish& preset, std::optional<std::uint32_t> delay) {
  const BitsWish bits = wish.knobs().bits.value_or(preset);
  if (!bits.dynamic && delay == 0U) return std::make_unique<TravelFixed>(bits.fixed);
  return std::make_unique<TravelPredicted>(
      TravelPredicted::Fixed{bits.dynamic ? std::nullopt : std::optional(bits.fixed), delay, wish.setting.warms_up});
}

std::unique_ptr<Rule> clipped(const Wish& wish, std::unique_ptr<Rule> rule, double preset) {
  const double multiple = wish.knobs().clip.value_or(preset);
  if (multiple > 0) return std::make_unique<RuleClipped>(std::move(rule), multiple);
  return rule;
}

GateStates::Rules rules(const Wish& wish) {
  GateStates::Rules rules;
  const auto off = wish.knobs().without;
  rules.apart = off != Off::apart;
  rules.soften = off != Off::soften;
  rules.compensate = off != Off::compensate;
  rules.foresee = off != Off::foresee;
  rules.hold = off != Off::hold;
  rules.judge = off != Off::judge;
  rules.cancel = off != Off::cancel;
  rules.over_stale_gap = wish.knobs().bound_max.value_or(static_cast<std::uint32_t>(rules.over_stale_gap));
  return rules;
}

struct Guards {
  std::uint32_t lookahead = 1;  // Nesterov for everyone
  double clip = 0;              // 0: never; strategies that allow staleness clip
};
constexpr double stale_clip = 1.5;
constexpr std::uint32_t preset_bound = 3;
constexpr std::uint32_t preset_bound_max = 15;  // dssp

/// Workers send gradients, one step at a time.
Mechanisms gradients(const Wish& wish, std::unique_ptr<Load> load, std::unique_ptr<Gate> gate, const Guards& guards) {
  Mechanisms m;
  m.load = std::move(load);
  m.gate = std::move(gate);
  m.rule = clipped(wish, std::make_unique<RuleMean>(wish.setting.global_batch), guards.clip);
  m.lookahead_terms = wish.knobs().lookahead.value_or(guards.lookahead);
  m.momentum = wish.knobs().momentum.value_or(wish.setting.momentum);
  m.traffic = wish.setting.traffic;
  m.travel = travel(wish, {}, 0);
  return m;
}

/// Workers send what several steps on their own have changed. The look-ahead is theirs: nothing is sent ahead of w.
Mechanisms deltas(const Wish& wish, std::unique_ptr<Load> load, std::unique_ptr<Gate> gate, std::uint32_t steps) {
  Mechanisms m;
  m.load = std::move(load);
  m.gate = std::move(gate);
  m.rule = clipped(wish, std::make_unique<RuleModelMean>(), 0);
  m.interval = std::make_unique<IntervalFixed>(steps);
  m.momentum = wish.knobs().momentum.value_or(wish.setting.momentum);
  return m;
}

// The table ----------------------------------------------------------------------------------------------------------------------------

const std::vector<Row>& table() {
  static const std::vector<Row> rows{
      {{"bsp", "equal batches; everyone waits for everyone; one update by the mean", "staleness 0, same result whatever the timing",
        "the pace of the slowest worker"},
       {"bits", "lookahead", "clip", "momentum", "lr"},
       [](const Wish& wish) { return gradients(wish, equal(wish), std::make_unique<GateAll>(), {}); }},
      {{"lb-bsp", "as bsp, but batches by measured speed so that all finish together", "staleness 0",
        "every step still waits for the wire and for surprises"},
       {"replan", "bits", "lookahead", "clip", "momentum", "lr"},
       [](const Wish& wish) { return gradients(wish, by_speed(wish), std::make_unique<GateAll>(), {}); }},
      {{"asp", "equal batches; applied on arrival; nobody waits", "every device always busy",
        "staleness without bound, about workers-1 versions"},
       {"bits", "lookahead", "clip", "momentum", "lr"},
       [](const Wish& wish) { return gradients(wish, equal(wish), std::make_unique<GateNone>(), {.clip = stale_clip}); }},
      {{"asp-look", "asp whose pulls look four terms of momentum ahead", "every device always busy, staleness partly foreseen",
        "staleness without bound"},
       {"bits", "lookahead", "clip", "momentum", "lr"},
       [](const Wish& wish) { return gradients(wish, equal(wish), std::make_unique<GateNone>(), {.lookahead = 4, .clip = stale_clip}); }},
      {{"ssp", "applied on arrival; at most 3 steps ahead of the slowest", "bounded staleness",
        "the slowest worker's pace in the long run"},
       {"bound", "bits", "lookahead", "clip", "momentum", "lr"},
       [](const Wish& wish) {
         const std::uint32_t bound = wish.knobs().bound.value_or(preset_bound);
         return gradients(wish, equal(wish), std::make_unique<GateBound>(bound, bound), {.clip = stale_clip});
       }},
      {{"dssp", "ssp whose bound moves between 3 and 15 by predicted waiting time", "bounded staleness",
        "the slowest worker's pace in the long run"},
       {"bound", "bound_max", "bits", "lookahead", "clip", "momentum", "lr"},
       [](const Wish& wish) {
         const std::uint32_t lower = wish.knobs().bound.value_or(preset_bound);
         const std::uint32_t upper = wish.knobs().bound_max.value_or(preset_bound_max);
         return gradients(wish, equal(wish), std::make_unique<GateBound>(lower, upper), {.clip = stale_clip});
       }},
      {{"local-sgd", "8 local steps each, then the mean of the models; everyone waits for everyone", "an eighth of the messages",
        "models drift apart between means; the slowest worker's pace"},
       {"steps", "clip", "momentum", "lr"},
       [](const Wish& wish) { return deltas(wish, equal(wish), std::make_unique<GateAll>(), wish.knobs().steps.value_or(8)); }},
      {{"hps", "batches by measured speed, steps that end together, parameters that travel while others compute, in as many bits as fit",
        "staleness at most 1, every device busy, no wire waited for", "a little sample efficiency where it overlaps"},
       {"replan", "bits", "delay", "box", "lookahead", "clip", "momentum", "lr"},
       [](const Wish& wish) {
         auto load = by_speed(wish, {.boxed = boxed(wish), .counts_travel = true});
         Mechanisms m = gradients(wish, std::move(load), std::make_unique<GateAll>(), {.clip = stale_clip});
         m.travel = travel(wish, {.dynamic = true, .fixed = {}}, wish.knobs().delay);
         return m;
       }},
      {{"adaptive",
        "batches by measured speed; a barrier from which stragglers are let go, and which rule their gradients meet depends on how "
        "far apart the workers are",
        "nobody waits long for a straggler, nothing fresh meets a stale direction in the momentum",
        "a straggler's gradients count a little less than their samples"},
       {"bound_max", "replan", "bits", "box", "without", "lookahead", "clip", "momentum", "lr"},
       [](const Wish& wish) {
         auto load = by_speed(wish, {.boxed = boxed(wish), .counts_travel = true});
         Mechanisms m = gradients(wish, std::move(load), std::make_unique<GateStates>(rules(wish)), {.clip = stale_clip});
         m.travel = travel(wish, {.dynamic = true, .fixed = {}}, 0);
         return m;
       }},
      {{"grouped",
        "workers of similar speed form groups: a barrier inside a group, nothing between groups; batches by measured speed, a rate "
        "for each group",
        "nobody waits for anybody much slower than itself", "staleness of about one version per other group"},
       {"replan", "bits", "box", "without", "lookahead", "clip", "momentum", "lr"},
       [](const Wish& wish) {
         auto load = by_speed(wish, {.boxed = boxed(wish), .counts_travel = true});
         const auto off = wish.knobs().without;
         auto gate = std::make_unique<GateGroups>(GateGroups::Rules{.regroup = off != Off::regroup,
                                                                    .hold = off != Off::hold,
                                                                    .foresee = off != Off::foresee,
                                                                    .rates = off != Off::rates,
                                                                    .turns = off != Off::turns});
         Mechanisms m = gradients(wish, std::move(load), std::move(gate), {.clip = stale_clip});
         m.travel = travel(wish, {.dynamic = true, .fixed = {}}, 0);
         return m;
       }},
      {{"multistep",
        "rounds of several local steps that end together; the next round goes on while the last one travels in few bits, and what comes "
        "back "
        "pulls the local models together",
        "no wire waited for, a few percent of the bytes", "models drift apart within a round; one round of staleness"},
       {"steps", "correction", "variate", "delay", "bits", "clip", "momentum", "lr"},
       [](const Wish& wish) {
         constexpr double preset_correction = 0.25;
         std::unique_ptr<Load> load = std::make_unique<LoadRounds>(wish.setting.global_batch);
         if (!wish.spec.batches.empty()) load = equal(wish);
         Mechanisms m = deltas(wish, std::move(load), std::make_unique<GateAll>(), 1);
         m.interval = std::make_unique<IntervalAdaptive>(wish.knobs().steps);
         m.travel =
             std::make_unique<TravelFixed>(wish.knobs().bits.value_or(BitsWish{false, {4, 4}}).fixed, wish.knobs().delay.value_or(1));
         m.correction = wish.knobs().correction.value_or(preset_correction);
         m.variate = wish.knobs().variate.value_or(false);
         m.traffic = wish.setting.traffic;
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
  const std::uint32_t lower = knobs.bound.value_or(preset_bound);
  const std::uint32_t upper = knobs.bound_max.value_or(preset_bound_max);
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

Result<Strategy> make_strategy(const StrategySpec& spec, const Setting& setting) {
  const Row* row = find_row(spec.kind);
  if (row == nullptr)
    return bad_input(fmt::format("strategy \"{}\" is not known; expected one of {}", spec.kind, fmt::join(strategy_names(), ", ")));
  if (const auto faults = knob_faults(spec); !faults.empty())
    return bad_input(
        fmt::format("strategy \"{}\": {}: found {}, expected {}", spec.kind, faults[0].knob, faults[0].found, faults[0].expected));
  Mechanisms mechanisms = row->build({spec, setting});
  mechanisms.bits_wished = spec.knobs.bits.has_value();
  return Strategy(std::move(mechanisms));
}

}  // namespace motley::policy
