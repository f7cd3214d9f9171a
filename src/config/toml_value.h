// A TOML document as plain values with their place in the file. toml++ is used in toml_parse.cpp only, because its headers compile slowly.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace motley::config {

struct Value;
struct Entry;

using Array = std::vector<Value>;

/// Keys are unique. Searched linearly, since tables are small.
struct Table {
  std::vector<Entry> entries;
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] Value* find(std::string_view key);
};

/// A date or time, which no key of a job accepts.
struct Moment {};

struct Value {
  std::variant<Table, Array, std::string, std::int64_t, double, bool, Moment> held;
  std::string where;  // "examples/x.toml:12", or the option that set it: "--set a.b=c"
};

struct Entry {
  std::string key;
  Value value;
};

/// For errors: "-5", "\"cheap\"", "an array of 3 values". Long strings are cut, control characters are shown as '?'.
std::string describe(const Value& value);
/// The same with the kind in front: "a string \"cheap\"", "an integer -5".
std::string describe_kind(const Value& value);

/// Parses a whole document; `name` stands for the file in places. An error names name:line:column and the reason.
Result<Value> parse_toml(std::string_view text, const std::string& name);

/// Parses a value of the command line: TOML, or else the text itself as a string.
Value parse_bare_value(std::string_view text, const std::string& where);

/// Reads and parses `file`, at most 16 MiB. When it is missing, the error suggests the most similar name in that folder.
Result<Value> load_toml(const std::filesystem::path& file);

}  // namespace motley::config
