// The state of a chief as JSON text:
//   {format, version, counted: [[first, last], ...], next_evaluation, evaluated, next_worker, trained_ns, strategy: [...]}
#pragma once
#include <string>

#include "base/result.h"
#include "protocol/chief.h"

namespace motley::runtime {

[[nodiscard]] std::string chief_state_json(const protocol::ChiefState& state);
Result<protocol::ChiefState> read_chief_state(const std::string& text);

}  // namespace motley::runtime
