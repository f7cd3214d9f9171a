// The house: which room may include which, where torch and the outside world may be touched, how a file begins and how long it gets.
// Reads src/ as text and knows nothing of what the code does. The rules are the tables below; ARCHITECTURE.md says why they are so.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Modules = std::set<std::string, std::less<>>;

/// Room -> the rooms it may include beside itself.
const std::map<std::string, Modules, std::less<>> architecture = {
    // foundation
    {"base", {}},
    // decisions
    {"cluster", {"base"}},
    {"policy", {"base", "cluster"}},
    {"pipeline", {"base", "cluster"}},
    {"wire", {"base"}},
    {"trace", {"base"}},
    {"protocol", {"base", "policy", "pipeline", "wire", "trace"}},
    // numbers
    {"codec", {"base"}},
    {"store", {"base", "codec"}},
    {"learn", {"base", "codec"}},
    // drivers
    {"transport", {"base", "wire"}},
    {"sim", {"base", "cluster", "policy", "pipeline", "wire", "trace", "protocol", "codec", "store"}},
    {"runtime", {"base", "cluster", "policy", "pipeline", "wire", "trace", "protocol", "codec", "store", "transport"}},
    {"report", {"base", "trace"}},
    // entry points
    {"config", {"base", "cluster", "policy", "pipeline", "wire", "trace", "protocol"}},
    {"engine",
     {"base", "cluster", "policy", "pipeline", "wire", "trace", "protocol", "codec", "store", "learn", "transport", "sim", "runtime",
      "report", "config"}},
    {"bench",
     {"engine", "base", "cluster", "policy", "pipeline", "wire", "trace", "protocol", "codec", "store", "learn", "transport", "sim",
      "runtime", "report", "config"}},
    {"cli",
     {"base", "cluster", "policy", "pipeline", "wire", "trace", "protocol", "codec", "store", "learn", "transport", "sim", "runtime",
      "report", "config", "engine", "bench"}},
};

/// Rooms that decide: arguments in, values out. Their tests may do as they like.
const Modules pure_modules = {"base", "cluster", "policy", "pipeline", "wire", "trace", "protocol"};

/// What a silent room does not say. Looked for in code, not in comments or string literals.
constexpr std::array<std::string_view, 19> impure_names = {"steady_clock",
                                                           "system_clock",
                                                           "high_resolution_clock",
                                                           "std::thread",
                                                           "std::jthread",
                                                           "std::this_thread",
                                                           "std::async",
                                                           "std::mutex",
                                                           "std::shared_mutex",
                                                           "std::condition_variable",
                                                           "std::cout",
                                                           "std::cerr",
                                                           "std::clog",
                                                           "std::cin",
                                                           "fmt::print",
                                                           "getenv",
                                                           "random_device",
                                                           "fstream",
                                                           "fopen"};

/// Looked for everywhere, comments included. In two pieces each, so that this file may be searched for them as well.
constexpr std::array<std::string_view, 2> unfinished = {
    "TO"
    "DO",
    "FIX"
    "ME"};
constexpr std::array<std::string_view, 6> machine_paths = {
    "/ho"
    "me/",
    "/ro"
    "ot/",
    "/wo"
    "rk/",
    "/Us"
    "ers/",
    "/mn"
    "t/",
    "/tm"
    "p/"};

constexpr std::array<std::string_view, 4> torch_folders = {"torch", "ATen", "c10", "caffe2"};
constexpr std::size_t longest_file = 400;  // lines; longer ones usually mix a decision with I/O, or want to be several

// -- what is looked at, and what is found ---------------------------------------------------------------------------------------------

struct Source {
  std::string path;  // below src/: "policy/ssp.cpp"
  std::string text;
};

struct Violation {
  std::string path;
  std::size_t line{};
  std::string found;
  std::string expected;
};

std::ostream& operator<<(std::ostream& out, const Violation& v) {
  return out << "src/" << v.path << ":" << v.line << ": found " << v.found << "; expected " << v.expected;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The text with the inside of comments, strings and characters blanked; line breaks stay where they are. Raw strings end at their `)"`.
std::string code_of(const std::string& text) {
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
std::string included_by(std::string_view line) {
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

std::string before_slash(const std::string& path) {
  const std::size_t slash = path.find('/');
  return slash == std::string::npos ? std::string{} : path.substr(0, slash);
}

std::string list_of(const Modules& modules) {
  std::string list;
  for (const std::string& module_name : modules) list += (list.empty() ? "" : ", ") + module_name;
  return list.empty() ? "no other module" : list;
}

// -- the rules, one function each -----------------------------------------------------------------------------------------------------

using Violations = std::vector<Violation>;

void includes_follow_the_table(const Source& source, Violations& out) {
  const std::string module_name = before_slash(source.path);
  const auto row = architecture.find(module_name);
  if (row == architecture.end()) {
    out.push_back({source.path, 1, "a file in '" + module_name + "'", "a module of the project (src/MODULE/file)"});
    return;
  }
  std::size_t number = 0;
  for (const std::string& line : lines_of(source.text)) {
    ++number;
    const std::string header = included_by(line);
    const std::string other = before_slash(header);
    if (other == module_name || row->second.contains(other)) continue;
    if (architecture.contains(other)) {
      out.push_back({source.path, number, "#include \"" + header + "\"", module_name + " to include only " + list_of(row->second)});
    } else if (!header.empty() && line.find('"') != std::string::npos && other.empty()) {
      out.push_back({source.path, number, "#include \"" + header + "\"",
                     "an include that names its module (\"" + module_name + "/" + header + "\")"});
    }
  }
}

void torch_stays_in_learn(const Source& source, Violations& out) {
  if (before_slash(source.path) == "learn") return;
  std::size_t number = 0;
  for (const std::string& line : lines_of(source.text)) {
    ++number;
    const std::string header = included_by(line);
    if (std::find(torch_folders.begin(), torch_folders.end(), before_slash(header)) != torch_folders.end())
      out.push_back(
          {source.path, number, "#include <" + header + ">", "torch under src/learn only; others take flat spans from learn/learner.h"});
  }
}

void decision_modules_are_pure(const Source& source, Violations& out) {
  if (!pure_modules.contains(before_slash(source.path)) || source.path.ends_with("_test.cpp")) return;
  std::size_t number = 0;
  for (const std::string& line : lines_of(code_of(source.text))) {
    ++number;
    for (const std::string_view word : impure_names)
      if (line.find(word) != std::string::npos)
        out.push_back(
            {source.path, number, std::string(word), "no clock, thread, environment or I/O in a decision module; take it as an argument"});
  }
}

void headers_introduce_themselves(const Source& source, Violations& out) {
  if (!source.path.ends_with(".h")) return;
  const auto lines = lines_of(source.text);
  if (std::find(lines.begin(), lines.end(), "#pragma once") == lines.end())
    out.push_back({source.path, 1, "no #pragma once", "#pragma once after the opening comment"});
  constexpr std::size_t a_few_words = 20;
  if (lines.empty() || !lines[0].starts_with("// ") || lines[0].size() < a_few_words)
    out.push_back(
        {source.path, 1, "'" + (lines.empty() ? std::string{} : lines[0]) + "'", "an opening comment that says what this file is"});
}

void files_stay_short(const Source& source, Violations& out) {
  const std::size_t count = lines_of(source.text).size();
  if (count > longest_file)
    out.push_back(
        {source.path, count, std::to_string(count) + " lines", "at most " + std::to_string(longest_file) + "; which two things is it?"});
}

void nothing_is_left_behind(const Source& source, Violations& out) {
  std::size_t number = 0;
  for (const std::string& line : lines_of(source.text)) {
    ++number;
    for (const std::string_view word : unfinished)
      if (line.find(word) != std::string::npos)
        out.push_back({source.path, number, std::string(word), "finished work; an issue holds what is not"});
    for (const std::string_view path : machine_paths) {
      const std::size_t at = line.find(path);
      if (at == std::string::npos || (at > 0 && std::isalnum(static_cast<unsigned char>(line[at - 1])) != 0)) continue;
      out.push_back({source.path, number, std::string(path), "no path of one machine; take it as an argument"});
    }
  }
}

Violations examine(const Source& source) {
  Violations out;
  includes_follow_the_table(source, out);
  torch_stays_in_learn(source, out);
  decision_modules_are_pure(source, out);
  headers_introduce_themselves(source, out);
  files_stay_short(source, out);
  nothing_is_left_behind(source, out);
  return out;
}

// -- the house as it stands -----------------------------------------------------------------------------------------------------------

const std::filesystem::path root = MOTLEY_SOURCE_DIR;

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Source> sources() {
  std::vector<Source> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "src")) {
    const auto extension = entry.path().extension();
    if (entry.is_regular_file() && (extension == ".h" || extension == ".cpp"))
      all.push_back({entry.path().lexically_relative(root / "src").generic_string(), read(entry.path())});
  }
  return all;
}

TEST(Architecture, EveryFileKeepsTheRules) {
  const auto all = sources();
  EXPECT_GT(all.size(), 10U) << "almost nothing found below " << root / "src"
                             << ": is MOTLEY_SOURCE_DIR right?";
  for (const Source& source : all)
    for (const Violation& violation : examine(source)) ADD_FAILURE() << violation;
}

TEST(Architecture, TheBuildLinksNoRoomToOneItMayNotInclude) {
  std::size_t number = 0;
  std::string module_name;  // of the motley_module(...) whose list we are in
  for (const std::string& line : lines_of(read(root / "CMakeLists.txt"))) {
    ++number;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word.starts_with("motley_module(")) {
        module_name = word.substr(word.find('(') + 1);
        EXPECT_TRUE(architecture.contains(module_name))
            << "CMakeLists.txt:" << number << ": found module '" << module_name << "'; expected a module of the project";
        continue;
      }
      const bool last = word.ends_with(')');
      if (last) word.pop_back();
      if (!module_name.empty() && architecture.contains(module_name) && architecture.contains(word)) {
        EXPECT_TRUE(architecture.at(module_name).contains(word)) << "CMakeLists.txt:" << number << ": found " << module_name << " USES "
                                                                 << word << "; expected only " << list_of(architecture.at(module_name));
      }
      if (last) module_name.clear();
    }
  }
}

// -- the rules catch what they are there to catch --------------------------------------------------------------------------------------

const std::string opening = "// A header that opens as it should.\n#pragma once\n";

TEST(ArchitectureRules, LetGoodCodePass) {
  const std::vector<Source> good = {
      {"policy/gate/gate.h",
       opening + "#include <vector>\n#include \"base/ids.h\"\n#include \"cluster/spec.h\"\n#include \"policy/spec.h\"\n"},
      {"policy/gate_test.cpp", "#include <gtest/gtest.h>\n#include <fstream>\n#include \"policy/gate/gate.h\"\n"},
      {"policy/gate.cpp",
       "// not steady_clock\n/* nor\n std::mutex */ int n = 1'000; char c = '\\''; auto s = \"getenv \\\" std::cout\";\n"
       "auto r = R\"x(std::thread \" )\" )x\";\n"},
      {"learn/torch.cpp", "#include <torch/torch.h>\n#include \"codec/codec.h\"\n"},
      {"report/page.cpp", "#include <fstream>\n// see https://example.org" + std::string(machine_paths[0]) + "\n"},
      {"cli/main.cpp", "#include <boost/json.hpp>\n#include \"sim/world.h\"\n#include \"learn/learner.h\"\n"},
  };
  for (const Source& source : good)
    for (const Violation& violation : examine(source)) ADD_FAILURE() << violation;
}

struct Planted {
  Source source;
  std::size_t line{};
  std::string found;     // part of what the message must say
  std::string expected;  // likewise
};

std::ostream& operator<<(std::ostream& out, const Planted& planted) { return out << planted.source.path << " with " << planted.found; }

class PlantedViolation : public testing::TestWithParam<Planted> {};

TEST_P(PlantedViolation, IsFoundWhereItIs) {
  const Planted& planted = GetParam();
  const Violations violations = examine(planted.source);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].line, planted.line);
  EXPECT_NE(violations[0].found.find(planted.found), std::string::npos) << violations[0];
  EXPECT_NE(violations[0].expected.find(planted.expected), std::string::npos) << violations[0];
}

std::vector<Planted> planted_violations() {
  std::vector<Planted> all = {
      {{"policy/a.cpp", "\n#include \"sim/world.h\"\n"}, 2, "sim/world.h", "policy to include only base, cluster"},
      {{"policy/a_test.cpp", "#include <gtest/gtest.h>\n#include \"protocol/chief.h\"\n"}, 2, "protocol/chief.h", "base, cluster"},
      {{"protocol/a.cpp", "  #  include \"cluster/spec.h\"\n"},
       1,
       "cluster/spec.h",
       "protocol to include only base, pipeline, policy, trace, wire"},
      {{"sim/a.cpp", "#include \"learn/learner.h\"\n"}, 1, "learn/learner.h", "sim to include only"},
      {{"base/a.cpp", "#include <wire/message.h>\n"}, 1, "wire/message.h", "no other module"},
      {{"wire/a.cpp", "#include \"frame.h\"\n"}, 1, "frame.h", "wire/frame.h"},
      {{"cellar/a.cpp", "int x;\n"}, 1, "cellar", "a module of the project"},
      {{"stray.cpp", "int x;\n"}, 1, "''", "a module of the project"},
      {{"store/a.cpp", "#include <ATen/ATen.h>\n"}, 1, "ATen/ATen.h", "src/learn"},
      {{"cli/a.cpp", "#include \"torch/torch.h\"\n"}, 1, "torch/torch.h", "src/learn"},
      {{"base/a.h", "// A header without its guard.\nint x;\n"}, 1, "no #pragma once", "#pragma once"},
      {{"base/a.h", "#pragma once\n// Too late to say so.\n"}, 1, "#pragma once", "an opening comment"},
      {{"cli/a.cpp", std::string(longest_file + 1, '\n')}, longest_file + 1, "401 lines", "at most 400"},
  };
  for (const std::string_view word : impure_names)
    all.push_back({{"trace/a.cpp", "int x;\nauto y = " + std::string(word) + ";\n"}, 2, std::string(word), "decision"});
  for (const std::string_view word : unfinished)
    all.push_back({{"sim/a.cpp", "// " + std::string(word) + " later\n"}, 1, std::string(word), "issue"});
  for (const std::string_view path : machine_paths)
    all.push_back({{"runtime/a.cpp", "auto p = \"" + std::string(path) + "x\";\n"}, 1, std::string(path), "argument"});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Architecture, PlantedViolation, testing::ValuesIn(planted_violations()));

}  // namespace
