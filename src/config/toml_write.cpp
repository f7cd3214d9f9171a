#include "config/toml_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/check.h"
#include "base/match.h"

namespace motley::config {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string key_text(const std::string& key) {
  const bool bare =
      !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
  return bare ? key : quoted(key);
}

/// Always has a point or exponent, so that it reads back as a float.
std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string inline_text(const Value& value) {
  return std::visit(
      match{[](const Table& table) {
              std::string text = "{";
              for (const Entry& entry : table.entries)
                text += fmt::format("{}{} = {}", text.size() > 1 ? ", " : "", key_text(entry.key), inline_text(entry.value));
              return text + "}";
            },
            [](const Array& array) {
              std::string text = "[";
              for (const Value& item : array) text += (text.size() > 1 ? ", " : "") + inline_text(item);
              return text + "]";
            },
            [](const std::string& text) { return quoted(text); }, [](std::int64_t number) { return fmt::format("{}", number); },
            [](double number) { return number_text(number); }, [](bool truth) { return std::string(truth ? "true" : "false"); },
            [](const Moment&) { return std::string("1970-01-01"); }},
      value.held);
}

bool is_list_of_tables(const Value& value) {
  const auto* array = std::get_if<Array>(&value.held);
  return array != nullptr && !array->empty() &&
         std::all_of(array->begin(), array->end(), [](const Value& item) { return std::holds_alternative<Table>(item.held); });
}

void write_table(const Table& table, const std::string& path, std::string& out) {
  const auto deeper = [&](const std::string& key) { return path.empty() ? key_text(key) : path + "." + key_text(key); };
  for (const Entry& entry : table.entries)
    if (!std::holds_alternative<Table>(entry.value.held) && !is_list_of_tables(entry.value))
      out += fmt::format("{} = {}\n", key_text(entry.key), inline_text(entry.value));
  for (const Entry& entry : table.entries) {
    if (const auto* inner = std::get_if<Table>(&entry.value.held)) {
      out += fmt::format("\n[{}]\n", deeper(entry.key));
      write_table(*inner, deeper(entry.key), out);
    } else if (is_list_of_tables(entry.value)) {
      for (const Value& item : std::get<Array>(entry.value.held)) {
        out += fmt::format("\n[[{}]]\n", deeper(entry.key));
        write_table(std::get<Table>(item.held), deeper(entry.key), out);
      }
    }
  }
}

}  // namespace

std::string write_toml(const Value& document) {
  const auto* table = std::get_if<Table>(&document.held);
  check(table != nullptr, "a document is a table");
  std::string out;
  write_table(*table, "", out);
  return out;
}

}  // namespace motley::config
