// [strategy] and the entries of a strategy list: the same keys, checked by the same reader.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>

#include "config/job_sections.h"
#include "config/pipeline_strategy.h"
#include "pipeline/schedule.h"
#include "policy/strategies.h"

namespace motley::config {
namespace {

constexpr std::array<Named<std::optional<policy::BitsConfig>>, 8> bits_choices{{
    {"32", policy::BitsConfig{false, {32, 32}}},
    {"16", policy::BitsConfig{false, {16, 16}}},
    {"8", policy::BitsConfig{false, {8, 8}}},
    {"8/8", policy::BitsConfig{false, {8, 8}}},
    {"4/8", policy::BitsConfig{false, {4, 8}}},
    {"4/4", policy::BitsConfig{false, {4, 4}}},
    {"2/8", policy::BitsConfig{false, {2, 8}}},
    {"dynamic", policy::BitsConfig{true, {}}},
}};
constexpr std::array<Named<std::optional<bool>>, 2> yes_or_no{{{"true", true}, {"false", false}}};

constexpr std::array<Named<std::optional<std::string_view>>, 2> named_cuts{{{"planned", "planned"}, {"uniform", "uniform"}}};

constexpr std::array<Named<std::optional<policy::Off>>, 15> rules{{
    {"apart", policy::Off::bypass_momentum},
    {"soften", policy::Off::soften},
    {"compensate", policy::Off::compensate},
    {"foresee", policy::Off::look_ahead},
    {"hold", policy::Off::hold},
    {"judge", policy::Off::test_alignment},
    {"cancel", policy::Off::cancel},
    {"regroup", policy::Off::regroup},
    {"rates", policy::Off::rates},
    {"turns", policy::Off::turns},
    {"predict", policy::Off::predict},
    {"clipping", policy::Off::clipping},
    {"defer", policy::Off::defer},
    {"replan", policy::Off::replan},
    {"caps", policy::Off::caps},
}};

void read_knobs(Reader& section, policy::Knobs& knobs) {
  section.integer("steps", knobs.steps, at_least(1).no_more_than(1e6), "local steps of one round");
  section.integer("bound", knobs.bound, at_least(0).no_more_than(1e6),
                  "ssp: steps that a worker may be ahead of the slowest; dssp: the lower end");
  section.integer("bound_max", knobs.bound_max, at_least(0).no_more_than(1e6),
                  "dssp: the upper end of the bound; adaptive: versions beyond which a worker is over-stale");
  section.integer("lookahead", knobs.lookahead, between(0, 64),
                  "terms of momentum by which pulled parameters look ahead: 0 heavy ball, 1 Nesterov, more for staleness");
  section.number("clip", knobs.clip, at_least(0).no_more_than(1e6), "a gradient is clipped at this multiple of its moving norm; 0: never");
  section.number("momentum", knobs.momentum, from_to_below(0, 1), "replaces optimizer.momentum");
  section.number("lr", knobs.lr, above(0).no_more_than(1e3), "replaces optimizer.lr");
  section.integer("replan", knobs.replan, at_least(1).no_more_than(1e9), "updates between two computations of the batch sizes");
  section.choice("bits", knobs.bits, std::span<const Named<std::optional<policy::BitsConfig>>>(bits_choices),
                 "bits per value, pushed/pulled; dynamic: chosen by predicted speed");
  section.integer("overlap", knobs.overlap, between(0, 1),
                  "steps by which the parameters of a step may be late; default: chosen by predicted speed");
  section.choice("time_limited", knobs.time_limited, std::span<const Named<std::optional<bool>>>(yes_or_no),
                 "steps end at a planned time; the remaining samples return to the pool");
  section.number("correction", knobs.correction, between(0, 1),
                 "multistep: share of its local update that a worker discards when newer parameters arrive during a round");
  section.choice("control_variate", knobs.control_variate, std::span<const Named<std::optional<bool>>>(yes_or_no),
                 "local steps are corrected by the difference between the worker's and the mean direction");
  section.integer("micro_batches", knobs.micro_batches, between(1, 4096), "replaces pipeline.micro_batches");
  std::optional<std::string_view> cut;
  section.choice("cut", cut, std::span<const Named<std::optional<std::string_view>>>(named_cuts), "replaces pipeline.cut");
  if (cut) knobs.cut = std::string(*cut);
  section.choice("without", knobs.without, std::span<const Named<std::optional<policy::Off>>>(rules),
                 "switches off one rule of adaptive, grouped or adapipe, to measure its effect");
}

/// The pieces of "local-sgd:steps=16:lr=0.01", the kind first.
std::vector<std::string> split_at_colons(const std::string& text) {
  std::vector<std::string> pieces(1);
  for (const char c : text) {
    if (c == ':')
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  return pieces;
}

}  // namespace

Result<Value> strategy_table(const std::string& text, const std::string& where) {
  const auto pieces = split_at_colons(text);
  Table table;
  table.entries.push_back({"kind", {pieces.front(), where}});
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const std::size_t equals = pieces[i].find('=');
    if (equals == std::string::npos || equals == 0)
      return bad_input(fmt::format("{}: found \"{}\", expected knob=value, such as local-sgd:steps=16", where, pieces[i]));
    const std::string key = pieces[i].substr(0, equals);
    if (table.find(key) != nullptr) return bad_input(fmt::format("{}: {}: found twice, expected once", where, key));
    table.entries.push_back({key, parse_bare_value(pieces[i].substr(equals + 1), where)});
  }
  return Value{std::move(table), where};
}

void read_strategy_section(Reader section, policy::StrategySpec& strategy) {
  std::string kind = section.has("kind") ? "" : strategy.kind;
  std::vector<std::string_view> kinds(policy::strategy_names().begin(), policy::strategy_names().end());
  kinds.insert(kinds.end(), pipeline::schedule_names().begin(), pipeline::schedule_names().end());
  section.choice("kind", kind, kinds, "the strategy");
  strategy.kind = kind;  // no defaults are known for an unknown kind
  read_knobs(section, strategy.knobs);
  for (const policy::KnobFault& fault : is_pipeline(strategy) ? pipeline_knob_faults(strategy) : policy::knob_faults(strategy))
    section.complain_found(fault.knob, fault.found, fault.expected);
  section.finish();
}

Result<policy::StrategySpec> read_strategy(const Job& job, const std::string& text) {
  const auto table = strategy_table(text, fmt::format("strategy \"{}\"", text));
  if (!table) return table.error();
  policy::StrategySpec strategy{split_at_colons(text).front(), {}, job.strategy.batches};
  if (strategy.kind == job.strategy.kind) strategy.knobs = job.strategy.knobs;
  Complaints complaints;
  read_strategy_section(Reader(*table, "", complaints), strategy);
  if (!complaints.empty()) return complaints.error();
  return strategy;
}

}  // namespace motley::config
