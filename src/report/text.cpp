// UTF-8 by hand: reading code points, refusing what is not well formed. See text.h for what each function promises.
#include "report/text.h"

#include <algorithm>

#include "base/check.h"

namespace motley::report {
namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Bytes of the code point that begins `text`; 0 when they are not well-formed UTF-8. `text` is not empty.
std::size_t code_point_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t n = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (n == 0 || n > text.size()) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if (!continues(text[i])) return 0;
  if (n < 3) return n;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool not_a_character = (lead == 0xED && second >= 0xA0) || (lead == 0xF4 && second >= 0x90);
  const bool forbidden_in_xml = lead == 0xEF && second == 0xBF && static_cast<unsigned char>(text[2]) >= 0xBE;
  return overlong || not_a_character || forbidden_in_xml ? 0 : n;
}

/// A control character of Unicode's second row, U+0080 to U+009F; terminals obey some of them.
bool second_row_control(std::string_view point) {
  return point.size() == 2 && point[0] == '\xC2' && static_cast<unsigned char>(point[1]) < 0xA0;
}

std::vector<std::string_view> code_points(std::string_view text) {
  std::vector<std::string_view> points;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = std::max<std::size_t>(1, code_point_bytes(text.substr(at)));
    points.push_back(text.substr(at, n));
    at += n;
  }
  return points;
}

std::string replaced(std::string_view text, std::string_view (*replacement)(char)) {
  std::string out;
  for (const char c : text) {
    const std::string_view other = replacement(c);
    if (other.empty())
      out += c;
    else
      out += other;
  }
  return out;
}

std::string_view xml_entity(char c) {
  switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return {};
  }
}

std::string_view markdown_escape(char c) {
  switch (c) {
    case '\\': return "\\\\";
    case '|': return "\\|";
    case '*': return "\\*";
    case '_': return "\\_";
    case '`': return "\\`";
    case '[': return "\\[";
    case ']': return "\\]";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    default: return {};
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = code_point_bytes(text.substr(at));
    const std::string_view point = text.substr(at, std::max<std::size_t>(1, n));
    const auto byte = static_cast<unsigned char>(point[0]);
    if (byte == '\t' || byte == '\n' || byte == '\r')
      out += ' ';
    else if (n == 0 || byte < 0x20 || byte == 0x7F || second_row_control(point))
      out += '?';
    else
      out += point;
    at += point.size();
  }
  return out;
}

std::string escape_xml(std::string_view text) { return replaced(printable(text), xml_entity); }

std::string escape_markdown(std::string_view text) { return replaced(printable(text), markdown_escape); }

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string shorten(std::string_view text, std::size_t most) {
  check(most >= 3, "a shortened text keeps at least its first and last character");
  const std::vector<std::string_view> points = code_points(text);
  if (points.size() <= most) return std::string(text);
  const std::size_t head = most / 2;
  const std::size_t tail = most - head - 1;
  std::string out;
  for (std::size_t i = 0; i < head; ++i) out += points[i];
  out += "…";
  for (std::size_t i = points.size() - tail; i < points.size(); ++i) out += points[i];
  return out;
}

std::vector<std::string> wrap(std::string_view text, std::size_t most) {
  check(most >= 1, "a line holds at least one character");
  const std::vector<std::string_view> points = code_points(text);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < points.size();) {
    std::size_t end = std::min(points.size(), at + most);
    if (end < points.size())
      for (std::size_t i = end; i > at; --i)
        if (points[i - 1] == ":" || points[i - 1] == ",") {
          end = i;
          break;
        }
    std::string line;
    for (; at < end; ++at) line += points[at];
    lines.push_back(std::move(line));
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

}  // namespace motley::report
