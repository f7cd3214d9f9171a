// "--set a.b=c": changes a parsed document before it is read, so that an override is judged exactly like the file.
#pragma once
#include <string>

#include "config/toml_value.h"

namespace motley::config {

/// Sets the value at the path left of '=' in `document` (a table). Missing tables on the way are made; in an array a part of the path is
/// an index, or the `name` of one of its tables. What is set says "--set a.b=c" as its place. Errors say the same and what was found there.
Outcome apply_override(Value& document, const std::string& text);

}  // namespace motley::config
