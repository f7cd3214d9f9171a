// Where a process writes its log: one line per call, without a line break.
#pragma once
#include <functional>
#include <string>

namespace motley::runtime {

using Log = std::function<void(const std::string&)>;

}  // namespace motley::runtime
