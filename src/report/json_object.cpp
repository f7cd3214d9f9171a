#include "report/json_object.h"

#include <fmt/format.h>

#include <cmath>

#include "report/text.h"

namespace motley::report {

JsonObject& JsonObject::json(std::string_view key, std::string_view value) {
  if (body_.size() > 1) body_ += ',';
  body_ += '"';
  body_ += key;
  body_ += "\":";
  body_ += value;
  return *this;
}

JsonObject& JsonObject::text(std::string_view key, std::string_view value) {
  std::string quoted = "\"";
  for (const char c : printable(value)) {  // leaves only these two to escape
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return json(key, quoted + '"');
}

JsonObject& JsonObject::count(std::string_view key, std::uint64_t value) { return json(key, fmt::format("{}", value)); }

JsonObject& JsonObject::number(std::string_view key, double value) {
  return json(key, std::isfinite(value) ? fmt::format("{}", value) : "null");
}

}  // namespace motley::report
