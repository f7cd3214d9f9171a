// Sizes of classes and functions, read from text formatted by clang-format: definitions begin in column 0 (classes may be indented) and end
// at a brace in the same column. A heuristic, not a parser.
#pragma once
#include <cstddef>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "source_text.h"

namespace motley {

struct ClassShape {
  std::string path;  // of the file with the class body
  std::size_t members = 0;
  std::size_t lines = 0;  // of the body and the member functions in all files
};

struct FunctionShape {
  std::string path;
  std::string name;
  std::size_t line = 0;
  std::size_t lines = 0;
};

struct Shapes {
  std::map<std::string, ClassShape> classes;  // by MODULE/NAME
  std::vector<FunctionShape> functions;
};

/// Classes with one name in one module are merged; small local classes of the same name in two files are kept apart.
class ShapeReader {
 public:
  void read(const Source& source) {
    path_ = source.path;
    module_name_ = before_slash(source.path);
    lines_ = lines_of(code_of(source.text));
    for (std::string& line : lines_) line.resize(line.find_last_not_of(' ') + 1);
    for (std::size_t i = 0; i < lines_.size(); ++i) read_class(i);
    for (std::size_t i = 0; i < lines_.size();) i = read_function(i);
  }
  [[nodiscard]] const Shapes& shapes() const { return shapes_; }

 private:
  void read_class(std::size_t at) {
    static const std::regex opening(R"(^(\s*)(?:template\s*<.*>\s*)?(?:class|struct)\s+(?:\w+::)*(\w+)[^;()]*\{\s*$)");
    std::smatch found;
    if (!std::regex_match(lines_[at], found, opening)) return;
    const std::string indent = found[1];
    const std::size_t end = closing(at, indent);
    ClassShape& shape = shapes_.classes[module_name_ + "/" + found[2].str()];
    shape.path = path_;
    shape.lines += end - at + 1;
    std::size_t members = 0;
    for (std::size_t i = at + 1; i < end; ++i) members += members_declared(lines_[i], indent.size() + 2);
    shape.members = std::max(shape.members, members);
  }

  /// Data members end in an underscore; a line may declare several.
  static std::size_t members_declared(const std::string& line, std::size_t indent) {
    static const std::regex skipped(R"(^\s*(return|using|static|friend|delete|throw|if|for|while)\b.*)");
    static const std::regex member(R"([\s&*>](\w+_)(\[[^\]]*\])?\s*(=[^,;]*|\{[^;]*\})?\s*(?=[,;]))");
    if (line.size() <= indent || line.find_first_not_of(' ') != indent || line.back() != ';') return 0;
    if (std::regex_match(line, skipped)) return 0;
    const std::size_t first = line.find('(');
    std::smatch found;
    if (!std::regex_search(line, found, member)) return 0;
    if (first != std::string::npos && first < static_cast<std::size_t>(found.position()) && line.find('<') > first) return 0;
    return static_cast<std::size_t>(std::distance(std::sregex_iterator(line.begin(), line.end(), member), std::sregex_iterator()));
  }

  /// Reads the definition that begins at line `at`, if there is one. Returns the next line to read.
  std::size_t read_function(std::size_t at) {
    static const std::regex other(R"(^(namespace|class|struct|enum|union|extern|using|typedef|static_assert|public|private|#).*)");
    const std::string& first = lines_[at];
    if (first.empty() || std::isalpha(static_cast<unsigned char>(first[0])) == 0 || std::regex_match(first, other)) return at + 1;
    std::string signature = first;
    std::size_t opening = at;
    while (signature.find_first_of("{;") == std::string::npos && opening + 1 < lines_.size() && lines_[opening + 1].starts_with(' '))
      signature += lines_[++opening];
    const std::size_t parameters = signature.find('(');
    const std::size_t brace = signature.find('{');
    if (parameters == std::string::npos || brace == std::string::npos || brace < parameters || signature.find(" = ") < parameters)
      return at + 1;
    if (lines_[opening].find('}') != std::string::npos && !lines_[opening].ends_with('{')) return opening + 1;  // on one line
    const std::size_t end = closing(opening, "");
    static const std::regex named(R"((?:(\w+)::)?(~?\w+|operator\S+)\s*$)");
    const std::string before = signature.substr(0, parameters);
    std::smatch found;
    std::string name = before;
    if (std::regex_search(before, found, named)) {
      name = found[0];
      if (const auto owner = shapes_.classes.find(module_name_ + "/" + found[1].str()); owner != shapes_.classes.end())
        owner->second.lines += end - at + 1;
      else if (found[1].matched)
        shapes_.classes[module_name_ + "/" + found[1].str()].lines += end - at + 1;
    }
    shapes_.functions.push_back({path_, name, at + 1, end - at + 1});
    return end + 1;
  }

  [[nodiscard]] std::size_t closing(std::size_t from, const std::string& indent) const {
    for (std::size_t i = from + 1; i < lines_.size(); ++i)
      if (lines_[i].starts_with(indent + "}")) return i;
    return lines_.size() - 1;
  }

  std::string path_;
  std::string module_name_;
  std::vector<std::string> lines_;
  Shapes shapes_;
};

}  // namespace motley
