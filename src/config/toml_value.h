// A TOML document as plain values that remember where they were written. Knows nothing of what a job is;
// toml++ stays behind parse_toml, so that only one file pays for its headers.
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

/// Keys are unique. Small, so a search walks it.
struct Table {
  std::vector<Entry> entries;
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] Value* find(std::string_view key);
};

/// A date or a time: TOML has them, jobs do not.
struct Moment {};

struct Value {
  std::variant<Table, Array, std::string, std::int64_t, double, bool, Moment> held;
  std::string where;  // "examples/x.toml:12", or the option that said it: "--set a.b=c"
};

struct Entry {
  std::string key;
  Value value;
};

/// "-5", "\"cheap\"", "an array of 3 values": what an error says it found. Long strings are cut, control characters shown as '?'.
std::string describe(const Value& value);
/// The same with the kind in front: "a string \"cheap\"", "an integer -5".
std::string describe_kind(const Value& value);

/// Parses a whole document; `name` is what `where` calls it. The error says name:line:column and what is wrong there.
Result<Value> parse_toml(std::string_view text, const std::string& name);

/// One value as a command line has it: a TOML value, or, where it is none, the text itself as a string.
Value parse_bare_value(std::string_view text, const std::string& where);

/// Reads and parses `file`, at most 16 MiB of it. The error of a missing file names the one in that folder that comes nearest.
Result<Value> load_toml(const std::filesystem::path& file);

}  // namespace motley::config
