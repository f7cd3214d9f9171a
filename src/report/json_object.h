// A JSON object as text, built member after member. Written by hand: lines of a running job need no document tree.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace motley::report {

/// Keys are literals of this program and are not escaped.
class JsonObject {
 public:
  /// Control characters become spaces or '?', bytes that are not UTF-8 '?'.
  JsonObject& text(std::string_view key, std::string_view value);
  JsonObject& count(std::string_view key, std::uint64_t value);
  /// Reads back as the same double; null when it is not finite, since JSON has no such number.
  JsonObject& number(std::string_view key, double value);
  /// `value` is JSON already.
  JsonObject& json(std::string_view key, std::string_view value);
  /// The whole object; more members may be added afterwards.
  [[nodiscard]] std::string str() const { return body_ + "}"; }

 private:
  std::string body_ = "{";
};

}  // namespace motley::report
