// Writes a document as TOML text that reads back as the same: the final job of a run, overrides included.
#pragma once
#include <string>

#include "config/toml_value.h"

namespace motley::config {

/// `document` is a table. Plain keys come before sections; nested tables become [a.b], arrays of tables [[a.b]].
std::string write_toml(const Value& document);

}  // namespace motley::config
