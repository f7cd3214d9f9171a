// Runs state machines in the simulator: one step, then the actions that it gave.
#pragma once
#include <utility>

namespace motley::sim {

/// Runs one step of a state machine and its actions. An action may lead to another step of the same machine, so `buffer`, which saves
/// allocations, is in use by one of them at most.
template <class Actions, class Step, class Act>
void step_and_act(Actions& buffer, Step step, Act act) {
  Actions actions = std::exchange(buffer, {});
  actions.clear();
  step(actions);
  for (const auto& action : actions) act(action);
  buffer = std::move(actions);
}

}  // namespace motley::sim
