#include "app/run_ribbons.h"

#include <fmt/format.h>

#include <boost/describe.hpp>

#include "app/results.h"
#include "policy/decisions.h"

namespace motley::app {
namespace {

static_assert(report::every_state.size() == trace::Ribbons::states_known);

/// A trace may come from a file, so its numbers need not be ours.
std::string reason(std::uint32_t number) {
  const auto why = static_cast<policy::Why>(number);
  return boost::describe::enum_to_string(why, nullptr) == nullptr ? fmt::format("reason {}", number) : std::string(policy::sentence(why));
}

report::States::Worker straggler(const Job& job, const trace::Ribbons::Worker& worker) {
  report::States::Worker row{name_of_node(job, worker.node), {}, {}, worker.straggled_s};
  for (const trace::Ribbon::Stretch& s : worker.straggling) row.straggling.push_back({s.from_s, s.to_s, reason(s.value)});
  for (const trace::Ribbons::Mark& mark : worker.marks) row.marks.push_back({mark.time_s, mark.cancelled, reason(mark.why)});
  return row;
}

}  // namespace

report::States states_of(const Job& job, const RunResult& run) {
  report::States states;
  if (!run.ribbons.has_states()) return states;
  for (const trace::Ribbon::Stretch& s : run.ribbons.states()) states.whole.push_back({s.from_s, s.to_s, report::every_state[s.value]});
  for (const trace::Ribbons::Worker& worker : run.ribbons.workers()) {
    states.workers.push_back(straggler(job, worker));
    states.cancelled += static_cast<double>(worker.cancelled);
    states.discarded += static_cast<double>(worker.discarded);
  }
  states.lasted_s = run.ribbons.state_lasted_s();
  states.staleness = run.ribbons.staleness();
  return states;
}

report::Groups groups_of(const Job& job, const RunResult& run) {
  report::Groups groups;
  if (!run.ribbons.has_groups()) return groups;
  for (const trace::Ribbons::Worker& worker : run.ribbons.workers()) {
    report::Groups::Worker row{name_of_node(job, worker.node), {}};
    for (const trace::Ribbon::Stretch& s : worker.groups) row.stretches.push_back({s.from_s, s.to_s, s.value});
    groups.workers.push_back(std::move(row));
  }
  for (const auto& [group, rates] : run.ribbons.rates()) {
    groups.rates.resize(group + 1);
    for (const trace::Ribbons::Rate& rate : rates) groups.rates[group].push_back({rate.time_s, rate.rate});
  }
  return groups;
}

}  // namespace motley::app
