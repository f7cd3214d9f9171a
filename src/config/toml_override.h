// "--set a.b=c": changes a parsed document before it is read, so that an override is checked exactly like the file.
#pragma once
#include <string>

#include "config/toml_value.h"

namespace motley::config {

/// Sets the value at the path left of '=' in `document` (a table). Missing tables of the path are created; in an array, a part of the path
/// is an index, or the `name` of one of its tables. The value's place, and that of errors, is "--set a.b=c".
Outcome apply_override(Value& document, const std::string& text);

}  // namespace motley::config
