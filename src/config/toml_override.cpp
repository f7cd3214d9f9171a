// Follows the path one key at a time: into tables by key, into arrays by index or name.
#include "config/toml_override.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "config/toml_nearest.h"

namespace motley::config {
namespace {

constexpr std::size_t deepest_path = 8;  // parts; the deepest key of a job has five: cluster.node.0.slowdowns.factor

struct Assignment {
  std::string where;
  std::vector<std::string> path;
  std::string value;
};

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts(1);
  for (const char c : path) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

Result<Assignment> parse_assignment(const std::string& text) {
  const std::string where = "--set " + text;
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return bad_input(where + ": found no '=', expected key=value, such as --set job.seed=3");
  Assignment out{where, split_path(text.substr(0, equals)), text.substr(equals + 1)};
  for (const std::string& key : out.path)
    if (key.empty()) return bad_input(where + ": found an empty key, expected names joined by dots, such as --set job.seed=3");
  if (out.path.size() > deepest_path)
    return bad_input(fmt::format("{}: found {} keys, expected at most {}", where, out.path.size(), deepest_path));
  return out;
}

std::vector<std::string> names_in(const Array& array) {
  std::vector<std::string> names;
  for (const Value& element : array)
    if (const auto* table = std::get_if<Table>(&element.held))
      if (const Value* name = table->find("name"))
        if (const auto* text = std::get_if<std::string>(&name->held)) names.push_back(*text);
  return names;
}

/// The element with that index or name; null when there is none.
Value* element_of(Array& array, const std::string& key) {
  std::size_t index = 0;
  const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (failure == std::errc{} && end == key.data() + key.size()) return index < array.size() ? &array[index] : nullptr;
  for (Value& element : array)
    if (auto* table = std::get_if<Table>(&element.held))
      if (const Value* name = table->find("name"))
        if (const auto* text = std::get_if<std::string>(&name->held); text != nullptr && *text == key) return &element;
  return nullptr;
}

Error no_such_element(const Assignment& set, const std::string& at, const std::string& key, const Array& array) {
  const auto names = names_in(array);
  return bad_input(fmt::format("{}: {}: found no element {}, expected an index from 0 to below {} or the name of one{}", set.where, at, key,
                               array.size(), did_you_mean(key, names)));
}

Value& child_of(Table& table, const std::string& key, const std::string& where) {
  if (Value* child = table.find(key)) return *child;
  table.entries.push_back({key, {Table{}, where}});
  return table.entries.back().value;
}

/// The value at the path; missing tables are created.
Result<Value*> find_or_create(Value& document, const Assignment& set) {
  Value* at = &document;
  std::string path;
  for (const std::string& key : set.path) {
    if (auto* table = std::get_if<Table>(&at->held)) {
      at = &child_of(*table, key, set.where);
    } else if (auto* array = std::get_if<Array>(&at->held)) {
      Value* element = element_of(*array, key);
      if (element == nullptr) return no_such_element(set, path, key, *array);
      at = element;
    } else {
      return bad_input(fmt::format("{}: {}: found {}, expected a table with a key {}", set.where, path, describe_kind(*at), key));
    }
    path += (path.empty() ? "" : ".") + key;
  }
  return at;
}

}  // namespace

Outcome apply_override(Value& document, const std::string& text) {
  const auto set = parse_assignment(text);
  if (!set) return set.error();
  const auto place = find_or_create(document, *set);
  if (!place) return place.error();
  **place = parse_bare_value(set->value, set->where);
  return Done{};
}

}  // namespace motley::config
