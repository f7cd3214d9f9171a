// Sentences about the stages of a pipeline, for the log of its chief.
#pragma once
#include <string>
#include <string_view>

#include "protocol/pipeline_chief.h"

namespace motley::runtime {

[[nodiscard]] std::string_view reason_text(protocol::AssignReason why);

/// `node`: its name and address; `stages`: of the layout.
[[nodiscard]] std::string expulsion_text(const std::string& node, const protocol::StageExpelled& expelled, std::size_t stages,
                                         Duration step_limit);

}  // namespace motley::runtime
