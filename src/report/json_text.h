// JSON values as text, for printing and files.
#pragma once
#include <boost/json/value.hpp>
#include <string>

namespace motley::report {

/// Always JSON: a number that is not finite, of which JSON has none, is null.
[[nodiscard]] std::string json_text(boost::json::value value);

}  // namespace motley::report
