// Stragglers over time: a row for the strategy's state, below it a row per worker with the stretches in which it straggled and marks where
// a step was cancelled or a contribution discarded. Tooltips have the reason.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "report/comparison.h"

namespace motley::report {

/// The row's strategy has states.
bool has_states(const Row& row);

/// "in step", "lagging", "over-stale".
std::string_view state_name(State state);
/// The CSS class of this state.
std::string_view state_class(State state);

/// An svg element that needs chart_style() around it. `index` is the row's place in the comparison. Not of a row without states.
std::string states_chart(const Row& row, std::size_t index);

/// The states, straggling and the two marks, as an svg element.
std::string states_legend();

}  // namespace motley::report
