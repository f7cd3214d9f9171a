#include "config/pipeline_strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <string_view>

#include "pipeline/schedule.h"

namespace motley::config {

bool is_pipeline(const policy::StrategySpec& strategy) {
  const auto names = pipeline::schedule_names();
  return std::find(names.begin(), names.end(), strategy.kind) != names.end();
}

std::vector<policy::KnobFault> pipeline_knob_faults(const policy::StrategySpec& strategy) {
  std::vector<policy::KnobFault> faults;
  std::vector<std::string_view> taken{"cut", "lr", "momentum"};
  if (strategy.kind != "naive-mp") taken.emplace_back("micro_batches");
  if (strategy.kind == "adapipe") taken.emplace_back("without");
  using Members = boost::describe::describe_members<policy::Knobs, boost::describe::mod_public>;
  boost::mp11::mp_for_each<Members>([&](auto member) {
    if (!(strategy.knobs.*member.pointer) || std::find(taken.begin(), taken.end(), member.name) != taken.end()) return;
    faults.push_back(
        {member.name, fmt::format("a knob that {} does not take", strategy.kind), fmt::format("one of {}", fmt::join(taken, ", "))});
  });
  using policy::Off;
  constexpr std::array<Off, 6> own{Off::predict, Off::clipping, Off::soften, Off::defer, Off::replan, Off::caps};
  if (strategy.kind == "adapipe" && strategy.knobs.without && std::find(own.begin(), own.end(), *strategy.knobs.without) == own.end())
    faults.push_back({"without", "a rule of another strategy", "one of predict, clipping, soften, defer, replan, caps"});
  return faults;
}

}  // namespace motley::config
