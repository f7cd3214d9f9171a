#include "policy/strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "policy/gate_all.h"
#include "policy/gate_bound.h"
#include "policy/gate_none.h"
#include "policy/load_equal.h"
#include "policy/load_finish_together.h"

namespace motley::policy {
namespace {

/// Numbers a preset starts from; the user's knobs replace them.
struct Defaults {
  bool balanced = false;            // load: finish together, else equal
  enum { all, none, bound } gate = all;
  std::uint32_t lower = 0, upper = 0;  // gate bound
  std::uint32_t steps = 1;          // local steps; more than one sends deltas
  bool deltas = false;
  std::uint32_t lookahead = 1;      // Nesterov for everyone
  double clip = 0;                  // staleness guard; 0: off
};

struct Row {
  Preset preset;
  Defaults defaults;
};

constexpr std::array<Row, 7> table{{
    {{"bsp", "equal batches; everyone waits for everyone; one update by the mean", "staleness 0, same result whatever the timing", "the pace of the slowest worker"},
     {}},
    {{"lb-bsp", "as bsp, but batches by measured speed so that all finish together", "staleness 0", "every step still waits for the wire and for surprises"},
     {.balanced = true}},
    {{"asp", "equal batches; applied on arrival; nobody waits", "every device always busy", "staleness without bound, about workers-1 versions"},
     {.gate = Defaults::none, .clip = 1.5}},
    {{"asp-look", "asp whose pulls look four terms of momentum ahead", "every device always busy, staleness partly foreseen", "staleness without bound"},
     {.gate = Defaults::none, .lookahead = 4, .clip = 1.5}},
    {{"ssp", "applied on arrival; at most 3 steps ahead of the slowest", "bounded staleness", "the slowest worker's pace in the long run"},
     {.gate = Defaults::bound, .lower = 3, .upper = 3, .clip = 1.5}},
    {{"dssp", "ssp whose bound moves between 3 and 15 by predicted waiting time", "bounded staleness", "the slowest worker's pace in the long run"},
     {.gate = Defaults::bound, .lower = 3, .upper = 15, .clip = 1.5}},
    {{"local-sgd", "8 local steps each, then the mean of the models; everyone waits for everyone", "an eighth of the messages", "models drift apart between means; the slowest worker's pace"},
     {.steps = 8, .deltas = true}},
}};

std::unique_ptr<Load> make_load(const Defaults& d, const StrategySpec& spec, const Setting& setting) {
  if (!spec.batches.empty()) return std::make_unique<LoadFixed>(setting.global_batch, spec.batches);
  if (d.balanced) return std::make_unique<LoadFinishTogether>(setting.global_batch, spec.knobs.replan.value_or(10));
  return std::make_unique<LoadEqual>(setting.global_batch);
}

std::unique_ptr<Gate> make_gate(const Defaults& d, const Knobs& knobs) {
  switch (d.gate) {
    case Defaults::all: return std::make_unique<GateAll>();
    case Defaults::none: return std::make_unique<GateNone>();
    case Defaults::bound: break;
  }
  const std::uint32_t lower = knobs.bound.value_or(d.lower);
  const std::uint32_t upper = d.upper == d.lower ? lower : knobs.bound_max.value_or(std::max(d.upper, lower));
  return std::make_unique<GateBound>(lower, std::max(lower, upper));
}

std::unique_ptr<Rule> make_rule(const Defaults& d, const Knobs& knobs, const Setting& setting) {
  std::unique_ptr<Rule> rule;
  if (d.deltas)
    rule = std::make_unique<RuleModelMean>();
  else
    rule = std::make_unique<RuleMean>(setting.global_batch);
  const double clip = knobs.clip.value_or(d.clip);
  if (clip > 0) rule = std::make_unique<RuleClipped>(std::move(rule), clip);
  return rule;
}

}  // namespace

std::span<const Preset> presets() {
  static const auto list = [] {
    std::array<Preset, table.size()> presets;
    std::transform(table.begin(), table.end(), presets.begin(), [](const Row& row) { return row.preset; });
    return presets;
  }();
  return list;
}

std::span<const std::string_view> strategy_names() {
  static const auto list = [] {
    std::array<std::string_view, table.size()> names;
    std::transform(table.begin(), table.end(), names.begin(), [](const Row& row) { return row.preset.name; });
    return names;
  }();
  return list;
}

Result<Strategy> make_strategy(const StrategySpec& spec, const Setting& setting) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.preset.name == spec.kind; });
  if (row == table.end()) return bad_input(fmt::format("strategy \"{}\" is not known; expected one of {}", spec.kind, fmt::join(strategy_names(), ", ")));
  const Defaults& d = row->defaults;
  Mechanisms m;
  m.load = make_load(d, spec, setting);
  m.gate = make_gate(d, spec.knobs);
  m.rule = make_rule(d, spec.knobs, setting);
  m.interval = Interval(d.deltas ? spec.knobs.steps.value_or(d.steps) : 1);
  m.lookahead_terms = spec.knobs.lookahead.value_or(d.lookahead);
  m.momentum = spec.knobs.momentum.value_or(setting.momentum);
  return Strategy(std::move(m));
}

}  // namespace motley::policy
