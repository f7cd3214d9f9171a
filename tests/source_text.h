// Source files as text for tests of the project's structure: lines, code without comments and literals, includes.
#pragma once
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace motley {

struct Source {
  std::string path;  // relative to src/: "policy/gate/gate.cpp"
  std::string text;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<Source> sources_below(const std::filesystem::path& folder) {
  std::vector<Source> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto extension = entry.path().extension();
    if (entry.is_regular_file() && (extension == ".h" || extension == ".cpp"))
      all.push_back({entry.path().lexically_relative(folder).generic_string(), read_text(entry.path())});
  }
  return all;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The text with the content of comments, strings and characters blanked; line breaks stay.
inline std::string code_of(const std::string& text) {
  std::string code = text;
  const auto blank = [&code](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < std::min(to, code.size()); ++i)
      if (code[i] != '\n') code[i] = ' ';
  };
  const auto after = [&text](std::string_view end, std::size_t from) {
    const std::size_t at = text.find(end, from);
    return at == std::string::npos ? text.size() : at + end.size();
  };
  const auto quoted_end = [&text](char quote, std::size_t i) {
    for (++i; i < text.size() && text[i] != quote && text[i] != '\n'; ++i)
      if (text[i] == '\\') ++i;
    return i + 1;
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    std::size_t end = i + 1;
    if (rest.starts_with("//")) {
      blank(i, end = std::min(text.find('\n', i), text.size()));
    } else if (rest.starts_with("/*")) {
      blank(i, end = after("*/", i + 2));
    } else if (rest.starts_with("R\"")) {
      const std::size_t open = std::min(text.find('(', i), text.size());
      blank(i, end = after(")" + text.substr(i + 2, open - i - 2) + "\"", open));
    } else if (rest[0] == '"') {
      blank(i + 1, (end = quoted_end('"', i)) - 1);
    } else if (rest[0] == '\'' && (i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0)) {  // 1'000 is a number
      blank(i + 1, (end = quoted_end('\'', i)) - 1);
    }
    i = end;
  }
  return code;
}

/// `policy/gate/gate.h` from `#include "policy/gate/gate.h"` or `#include <policy/gate/gate.h>`; empty from other lines.
inline std::string included_by(std::string_view line) {
  const auto skip_blanks = [&line] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip_blanks();
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip_blanks();
  if (!line.starts_with("include")) return {};
  line.remove_prefix(std::string_view("include").size());
  skip_blanks();
  if (line.empty()) return {};
  const std::size_t end = line.find(line.front() == '<' ? '>' : '"', 1);
  return end == std::string_view::npos ? std::string{} : std::string(line.substr(1, end - 1));
}

inline std::string before_slash(const std::string& path) {
  const std::size_t slash = path.find('/');
  return slash == std::string::npos ? std::string{} : path.substr(0, slash);
}

}  // namespace motley
