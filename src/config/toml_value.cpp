// Finds and describes values. Parsing is in toml_parse.cpp.
#include "config/toml_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/match.h"

namespace motley::config {
namespace {

constexpr std::size_t longest_quote = 60;  // characters: a message stays one line

std::string shortened_quote(const std::string& text) {
  std::string shown = text.substr(0, longest_quote);
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  return fmt::format("\"{}{}\"", shown, text.size() > longest_quote ? "..." : "");
}

std::string counted(std::size_t n, std::string_view thing) { return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s"); }

}  // namespace

const Value* Table::find(std::string_view key) const {
  const auto it = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return it == entries.end() ? nullptr : &it->value;
}

Value* Table::find(std::string_view key) { return const_cast<Value*>(std::as_const(*this).find(key)); }

std::string describe(const Value& value) {
  return std::visit(match{[](const Table& t) { return "a table of " + counted(t.entries.size(), "key"); },
                          [](const Array& a) { return "an array of " + counted(a.size(), "value"); },
                          [](const std::string& s) { return shortened_quote(s); }, [](std::int64_t n) { return fmt::format("{}", n); },
                          [](double x) { return fmt::format("{}", x); }, [](bool b) { return std::string(b ? "true" : "false"); },
                          [](Moment) { return std::string("a date or time"); }},
                    value.held);
}

std::string describe_kind(const Value& value) {
  const std::string_view kind =
      std::visit(match{[](const Table&) { return ""; }, [](const Array&) { return ""; }, [](const std::string&) { return "a string "; },
                       [](std::int64_t) { return "an integer "; }, [](double) { return "a number "; },
                       [](bool) { return "a truth value "; }, [](Moment) { return ""; }},
                 value.held);
  return std::string(kind) + describe(value);
}

}  // namespace motley::config
