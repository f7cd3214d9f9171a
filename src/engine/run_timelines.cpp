#include "engine/run_timelines.h"

#include <fmt/format.h>

#include <boost/describe.hpp>

#include "engine/results.h"
#include "policy/decisions.h"

namespace motley::engine {
namespace {

static_assert(report::every_state.size() == trace::StateTimelines::states_known);

/// A trace may come from a damaged file, so numbers are checked.
std::string reason(std::uint32_t number) {
  const auto why = static_cast<policy::Why>(number);
  return boost::describe::enum_to_string(why, nullptr) == nullptr ? fmt::format("reason {}", number) : std::string(policy::sentence(why));
}

report::States::Worker straggler(const config::Job& job, const trace::StateTimelines::Worker& worker) {
  report::States::Worker row{name_of_node(job, worker.node), {}, {}, worker.straggled_s};
  for (const trace::StateTimeline::Stretch& s : worker.straggling) row.straggling.push_back({s.from_s, s.to_s, reason(s.value)});
  for (const trace::StateTimelines::Mark& mark : worker.marks) row.marks.push_back({mark.time_s, mark.cancelled, reason(mark.why)});
  return row;
}

}  // namespace

report::States states_of(const config::Job& job, const RunResult& run) {
  report::States states;
  if (!run.state_timelines.has_states()) return states;
  for (const trace::StateTimeline::Stretch& s : run.state_timelines.states())
    states.whole.push_back({s.from_s, s.to_s, report::every_state[s.value]});
  for (const trace::StateTimelines::Worker& worker : run.state_timelines.workers()) {
    states.workers.push_back(straggler(job, worker));
    states.cancelled += static_cast<double>(worker.cancelled);
    states.discarded += static_cast<double>(worker.discarded);
  }
  states.lasted_s = run.state_timelines.state_lasted_s();
  states.staleness = run.state_timelines.staleness();
  return states;
}

report::Groups groups_of(const config::Job& job, const RunResult& run) {
  report::Groups groups;
  if (!run.state_timelines.has_groups()) return groups;
  for (const trace::StateTimelines::Worker& worker : run.state_timelines.workers()) {
    report::Groups::Worker row{name_of_node(job, worker.node), {}};
    for (const trace::StateTimeline::Stretch& s : worker.groups) row.stretches.push_back({s.from_s, s.to_s, s.value});
    groups.workers.push_back(std::move(row));
  }
  for (const auto& [group, rates] : run.state_timelines.rates()) {
    groups.rates.resize(group + 1);
    for (const trace::StateTimelines::Rate& rate : rates) groups.rates[group].push_back({rate.time_s, rate.rate});
  }
  return groups;
}

}  // namespace motley::engine
