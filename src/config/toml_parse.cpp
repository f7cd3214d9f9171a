// Converts toml++'s nodes to our values and its exceptions to Results. The only file that includes toml++.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <fstream>

#include "config/toml_nearest.h"
#include "config/toml_value.h"

namespace motley::config {
namespace {

constexpr std::size_t largest_file = 16U << 20U;  // bytes: a job with 100,000 separate nodes has half of that

std::string place(const std::string& name, const toml::source_position& at) {
  return fmt::format("{}:{}", name, std::max<std::uint32_t>(at.line, 1));
}

Value convert(const toml::node& node, const std::string& name);

Table convert_table(const toml::table& table, const std::string& name) {
  Table out;
  for (const auto& [key, child] : table) out.entries.push_back({std::string(key.str()), convert(child, name)});
  return out;
}

Array convert_array(const toml::array& array, const std::string& name) {
  Array out;
  for (const toml::node& child : array) out.push_back(convert(child, name));
  return out;
}

/// Recurses as deep as toml++ allows documents to nest (256).
Value convert(const toml::node& node, const std::string& name) {
  Value out{Moment{}, place(name, node.source().begin)};
  if (const auto* table = node.as_table()) out.held = convert_table(*table, name);
  if (const auto* array = node.as_array()) out.held = convert_array(*array, name);
  if (const auto* text = node.as_string()) out.held = text->get();
  if (const auto* integer = node.as_integer()) out.held = integer->get();
  if (const auto* number = node.as_floating_point()) out.held = number->get();
  if (const auto* truth = node.as_boolean()) out.held = truth->get();
  return out;
}

void relabel(Value& value, const std::string& where) {
  value.where = where;
  if (auto* array = std::get_if<Array>(&value.held))
    for (Value& child : *array) relabel(child, where);
  if (auto* table = std::get_if<Table>(&value.held))
    for (Entry& entry : table->entries) relabel(entry.value, where);
}

Error missing(const std::filesystem::path& file, std::string_view reason) {
  std::vector<std::string> others;
  std::error_code ignored;
  const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".toml") others.push_back((file.parent_path() / entry.path().filename()).string());
  std::sort(others.begin(), others.end());
  const auto near = nearest(file.string(), others);
  return bad_input(fmt::format("{}: found {}, expected a job file (TOML); {}", file.string(), reason,
                               near ? fmt::format("did you mean {}?", *near) : "ready ones are in examples/, such as examples/mixed.toml"));
}

}  // namespace

Result<Value> parse_toml(std::string_view text, const std::string& name) {
  try {
    Value root = convert(toml::parse(text), name);
    root.where = name + ":1";
    return root;
  } catch (const toml::parse_error& error) {
    return bad_input(
        fmt::format("{}:{}: this is not TOML: {}", place(name, error.source().begin), error.source().begin.column, error.description()));
  }
}

Value parse_bare_value(std::string_view text, const std::string& where) {
  const Result<Value> parsed = parse_toml(fmt::format("value = {}", text), where);
  const auto* table = parsed.ok() ? std::get_if<Table>(&parsed->held) : nullptr;
  if (table == nullptr || table->entries.size() != 1) return {std::string(text), where};
  Value value = table->entries.front().value;
  relabel(value, where);
  return value;
}

Result<Value> load_toml(const std::filesystem::path& file) {
  std::error_code failure;
  const auto status = std::filesystem::status(file, failure);
  if (status.type() == std::filesystem::file_type::not_found) return missing(file, "no such file");
  if (std::filesystem::is_directory(status)) return missing(file, "a folder");
  std::ifstream in(file, std::ios::binary);
  if (!in) return missing(file, "a file that cannot be read");
  std::string text(largest_file + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > largest_file)
    return bad_input(fmt::format("{}: found more than {} MiB, expected a job file", file.string(), largest_file >> 20U));
  return parse_toml(text, file.string());
}

}  // namespace motley::config
