// A document as TOML text again: what a run was told in the end, overrides included, in a form that reads back as the same.
#pragma once
#include <string>

#include "config/toml_value.h"

namespace motley::config {

/// `document` is a table. Plain keys come before sections; nested tables become [a.b], arrays of tables [[a.b]].
std::string write_toml(const Value& document);

}  // namespace motley::config
