// Who straggled when, and what became of it: a ribbon for the state of the whole, below it a row per worker with the stretches in which it
// straggled and marks where a step of it was cancelled or a contribution discarded. Tips say why.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "report/comparison.h"

namespace motley::report {

/// The row's strategy told states.
bool has_states(const Row& row);

/// "in step", "lagging", "over-stale".
std::string_view state_name(State state);
/// Class of what belongs to this state.
std::string_view state_class(State state);

/// An svg element that needs chart_style() around it. `index` is the row's place in the comparison. Not of a row without states.
std::string states_chart(const Row& row, std::size_t index);

/// The states, straggling and the two marks, as an svg element.
std::string states_legend();

}  // namespace motley::report
