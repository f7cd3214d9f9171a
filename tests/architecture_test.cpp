// The structure of the project: permitted includes, the places where torch and the system may be used, the opening of a file, sizes of
// files, classes and functions. Reads src/ as text. cmake/modules.cmake is the table of modules; ARCHITECTURE.md explains it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <ostream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "source_shape.h"
#include "source_text.h"

namespace motley {
namespace {

const std::filesystem::path root = MOTLEY_SOURCE_DIR;

using Modules = std::set<std::string, std::less<>>;
using Architecture = std::map<std::string, Modules, std::less<>>;  // module -> the modules it may include beside itself

/// `motley_module(NAME [UNITY] USES MODULES and libraries...)`; libraries have "::" in their names.
Architecture read_modules(const std::string& cmake) {
  Architecture table;
  std::string text;
  for (const std::string& line : lines_of(cmake)) text += line.substr(0, line.find('#')) + "\n";
  constexpr std::string_view call = "motley_module(";
  for (std::size_t at = 0; (at = text.find(call, at)) != std::string::npos;) {
    at += call.size();
    std::istringstream words(text.substr(at, text.find(')', at) - at));
    std::string module_name;
    words >> module_name;
    Modules& uses = table[module_name];
    for (std::string word; words >> word;)
      if (word != "UNITY" && word != "USES" && word.find("::") == std::string::npos) uses.insert(word);
  }
  return table;
}

const Architecture architecture = read_modules(read_text(root / "cmake" / "modules.cmake"));

/// Decision modules: arguments in, values out. Their tests are not restricted.
const Modules pure_modules = {"base", "cluster", "policy", "pipeline", "wire", "trace", "protocol"};

/// Names that decision modules do not use; searched in code, not in comments or string literals.
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

/// Searched in comments too. In two pieces each, so that this file passes the search.
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
constexpr std::size_t longest_file = 400;   // lines; a longer file usually mixes a decision with I/O
constexpr std::size_t most_members = 20;    // data members of a class; a class with more has several tasks
constexpr std::size_t longest_class = 450;  // lines of its body and its member functions in all files
constexpr std::size_t longest_function = 60;
constexpr std::size_t longest_body_comment = 2;  // lines; a longer comment belongs to the declaration, or the code should say it
constexpr std::size_t longest_test_name = 60;    // characters of TEST(Suite, Name)'s Name

/// Functions that are tables.
const std::map<std::string, std::string, std::less<>> exempt_functions = {
    {"policy/strategies.cpp table", "the table of strategies: one row for each"},
};

/// Classes and functions that are still to be divided; empty when that is done.
const std::set<std::string, std::less<>> to_be_divided = {
    "runtime/ChiefProcess",
    "runtime/PipelineChiefProcess",
    "runtime/ServerProcess",
    "runtime/StageProcess",
    "runtime/WorkerProcess",
    "cli/command_chief_pipeline.cpp PipelineChiefRun::open_endpoint",
};

/// Files whose tests are still to be renamed; empty when that is done.
const std::set<std::string, std::less<>> long_test_names = {
    "learn/torch/device_learner_test.cpp",
    "policy/communication/predictive_communication_test.cpp",
    "policy/gate/gate_groups_test.cpp",
    "policy/gate/gate_states_test.cpp",
    "policy/gate/groups_test.cpp",
    "policy/gate/stragglers_test.cpp",
    "policy/interval/adaptive_interval_test.cpp",
    "policy/monitor_test.cpp",
    "policy/strategies_test.cpp",
    "runtime/model_parts_test.cpp",
    "sim/pipeline_world_test.cpp",
    "sim/world_test.cpp",
    "store/replica_test.cpp",
    "trace/run_history_test.cpp",
    "trace/summary_test.cpp",
};

// -- sources and violations -----------------------------------------------------------------------------------------------------------

struct Violation {
  std::string path;
  std::size_t line{};
  std::string found;
  std::string expected;
};

std::ostream& operator<<(std::ostream& out, const Violation& v) {
  return out << "src/" << v.path << ":" << v.line << ": found " << v.found << "; expected " << v.expected;
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
    out.push_back({source.path, count, std::to_string(count) + " lines", "at most " + std::to_string(longest_file) + "; divide it"});
}

void nothing_is_left_behind(const Source& source, Violations& out) {
  std::size_t number = 0;
  for (const std::string& line : lines_of(source.text)) {
    ++number;
    for (const std::string_view word : unfinished)
      if (line.find(word) != std::string::npos) out.push_back({source.path, number, std::string(word), "finished work"});
    for (const std::string_view path : machine_paths) {
      const std::size_t at = line.find(path);
      if (at == std::string::npos || (at > 0 && std::isalnum(static_cast<unsigned char>(line[at - 1])) != 0)) continue;
      out.push_back({source.path, number, std::string(path), "no path of one machine; take it as an argument"});
    }
  }
}

/// Indented comments are those of bodies; `///` documents a member.
void body_comments_are_short(const Source& source, Violations& out) {
  const auto lines = lines_of(source.text);
  std::size_t begun = 0;
  for (std::size_t i = 0; i <= lines.size(); ++i) {
    const std::size_t at = i < lines.size() ? lines[i].find_first_not_of(' ') : std::string::npos;
    const bool comment = at != std::string::npos && at > 0 && lines[i].compare(at, 2, "//") == 0 && lines[i].compare(at, 3, "///") != 0;
    if (!comment && i - begun > longest_body_comment)
      out.push_back({source.path, begun + 1, "a comment of " + std::to_string(i - begun) + " lines in a body",
                     "at most " + std::to_string(longest_body_comment)});
    if (!comment) begun = i + 1;
  }
}

void test_names_are_short(const Source& source, Violations& out) {
  static const std::regex test(R"(^TEST(?:_F|_P)?\(\w+, (\w+)\))");
  if (long_test_names.contains(source.path)) return;
  std::size_t number = 0;
  for (const std::string& line : lines_of(source.text)) {
    ++number;
    std::smatch found;
    if (std::regex_search(line, found, test) && static_cast<std::size_t>(found.length(1)) > longest_test_name)
      out.push_back({source.path, number, "a test name of " + std::to_string(found.length(1)) + " characters",
                     "at most " + std::to_string(longest_test_name)});
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
  body_comments_are_short(source, out);
  test_names_are_short(source, out);
  return out;
}

// -- the project as it stands ---------------------------------------------------------------------------------------------------------

bool is_test(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.ends_with("_test.cpp") || name.find("for_tests") != std::string::npos || name.starts_with("test_");
}

/// Classes and functions above the limits, as MODULE/CLASS and "FILE FUNCTION", with their sizes.
std::map<std::string, std::string> too_large(const Shapes& shapes) {
  std::map<std::string, std::string> found;
  for (const auto& [name, shape] : shapes.classes)
    if (shape.members > most_members || shape.lines > longest_class)
      found[name] = std::to_string(shape.members) + " data members, " + std::to_string(shape.lines) + " lines; expected at most " +
                    std::to_string(most_members) + " and " + std::to_string(longest_class);
  for (const FunctionShape& function : shapes.functions)
    if (function.lines > longest_function)
      found[function.path + " " + function.name] =
          std::to_string(function.lines) + " lines; expected at most " + std::to_string(longest_function);
  return found;
}

TEST(Architecture, Every_file_keeps_the_rules) {
  const auto all = sources_below(root / "src");
  EXPECT_GT(all.size(), 10U) << "almost nothing found below " << root / "src: is MOTLEY_SOURCE_DIR right?";
  for (const Source& source : all)
    for (const Violation& violation : examine(source)) ADD_FAILURE() << violation;
}

TEST(Architecture, Classes_and_functions_keep_their_limits) {
  ShapeReader reader;
  for (const Source& source : sources_below(root / "src"))
    if (!is_test(source.path)) reader.read(source);
  EXPECT_GT(reader.shapes().functions.size(), 500U);
  for (const auto& [name, size] : too_large(reader.shapes()))
    if (!to_be_divided.contains(name) && !exempt_functions.contains(name)) ADD_FAILURE() << "src/" << name << ": found " << size;
}

/// A user's compiler sees them: the standard library and each other, nothing else.
void public_headers_stand_alone(const Source& source, Violations& out) {
  std::size_t number = 0;
  for (const std::string& line : lines_of(source.text)) {
    ++number;
    const std::string header = included_by(line);
    const bool standard = header.find_first_of("./") == std::string::npos;
    if (header.empty() || standard || header.starts_with("motley/")) continue;
    out.push_back({source.path, number, "#include <" + header + ">", "headers of the standard library and of include/motley only"});
  }
}

TEST(Architecture, Public_headers_stand_alone) {
  const auto all = sources_below(root / "include");
  EXPECT_GT(all.size(), 3U);
  Violations violations;
  for (const Source& source : all) {
    public_headers_stand_alone(source, violations);
    headers_introduce_themselves(source, violations);
    nothing_is_left_behind(source, violations);
  }
  for (const Violation& violation : violations) ADD_FAILURE() << "include/motley: " << violation;

  Violations planted;
  public_headers_stand_alone({"motley/a.h", "#include <vector>\n#include <motley/job.h>\n#include \"base/result.h\"\n"}, planted);
  ASSERT_EQ(planted.size(), 1U);
  EXPECT_EQ(planted[0].line, 3U);
}

TEST(Architecture, Every_folder_is_a_module_of_the_table) {
  EXPECT_GT(architecture.size(), 10U);
  for (const auto& entry : std::filesystem::directory_iterator(root / "src"))
    EXPECT_TRUE(!entry.is_directory() || architecture.contains(entry.path().filename().string())) << entry.path();
  for (const auto& [name, uses] : architecture) {
    EXPECT_TRUE(std::filesystem::is_directory(root / "src" / name)) << name;
    for (const std::string& used : uses) EXPECT_TRUE(architecture.contains(used)) << name << " USES " << used;
  }
}

/// The last cell of a row: "-", a list, or "everything but A, B".
Modules read_cell(std::string cell, const std::string& module_name) {
  std::replace(cell.begin(), cell.end(), ',', ' ');
  std::istringstream words(cell);
  Modules named, all;
  for (const auto& [name, uses] : architecture)
    if (name != module_name) all.insert(name);
  bool excluded = false;
  for (std::string word; words >> word;) {
    if (word == "everything")
      excluded = true;
    else if (std::isalpha(static_cast<unsigned char>(word[0])) != 0 && word != "but")
      named.insert(word);
  }
  if (!excluded) return named;
  for (const std::string& name : named) all.erase(name);
  return all;
}

TEST(Architecture, The_page_has_the_same_table) {
  Modules seen;
  for (const std::string& line : lines_of(read_text(root / "ARCHITECTURE.md"))) {
    const std::size_t link = line.find("](src/");
    if (!line.starts_with("|") || link == std::string::npos) continue;
    const std::string name = line.substr(link + 6, line.find(')', link) - link - 6);
    if (name.find('/') != std::string::npos) continue;  // a file: another table
    const std::string row = line.substr(0, line.find_last_not_of(" |") + 1);
    seen.insert(name);
    ASSERT_TRUE(architecture.contains(name)) << line;
    EXPECT_EQ(read_cell(row.substr(row.rfind('|') + 1), name), architecture.at(name)) << "ARCHITECTURE.md, " << name;
  }
  for (const auto& [name, uses] : architecture) EXPECT_TRUE(seen.contains(name)) << "ARCHITECTURE.md has no row for " << name;
}

// -- the rules find planted violations --------------------------------------------------------------------------------------------------

const std::string opening = "// A header that opens as it should.\n#pragma once\n";

TEST(ArchitectureRules, Accept_good_code) {
  const std::vector<Source> good = {
      {"policy/gate/gate.h",
       opening + "#include <vector>\n#include \"base/ids.h\"\n#include \"cluster/spec.h\"\n#include \"policy/spec.h\"\n"},
      {"policy/gate_test.cpp", "#include <gtest/gtest.h>\n#include <fstream>\n#include \"policy/gate/gate.h\"\n"},
      {"policy/gate.cpp",
       "// not steady_clock\n/* nor\n std::mutex */ int n = 1'000; char c = '\\''; auto s = \"getenv \\\" std::cout\";\n"
       "auto r = R\"x(std::thread \" )\" )x\";\n"},
      {"learn/torch.cpp", "#include <torch/torch.h>\n#include \"codec/codec.h\"\n"},
      {"report/page.cpp", "#include <fstream>\n// see https://example.org" + std::string(machine_paths[0]) + "\n"},
      {"cli/a_test.cpp", "// one\n// two\n// three\nTEST(A, Does_something) {\n  // one\n  // two\n}\n"},
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

TEST_P(PlantedViolation, Is_found_where_it_is) {
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
      {{"protocol/a.cpp", "  #  include \"codec/codec.h\"\n"},
       1,
       "codec/codec.h",
       "protocol to include only base, cluster, pipeline, policy, trace, wire"},
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
      {{"cli/a.cpp", "int f() {\n  // one\n  // two\n  // three\n}\n"}, 2, "a comment of 3 lines", "at most 2"},
      {{"cli/a_test.cpp", "TEST(A, " + std::string(longest_test_name + 1, 'x') + ") {}\n"}, 1, "61 characters", "at most 60"},
  };
  for (const std::string_view word : impure_names)
    all.push_back({{"trace/a.cpp", "int x;\nauto y = " + std::string(word) + ";\n"}, 2, std::string(word), "decision"});
  for (const std::string_view word : unfinished)
    all.push_back({{"sim/a.cpp", "// " + std::string(word) + " later\n"}, 1, std::string(word), "finished"});
  for (const std::string_view path : machine_paths)
    all.push_back({{"runtime/a.cpp", "auto p = \"" + std::string(path) + "x\";\n"}, 1, std::string(path), "argument"});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Architecture, PlantedViolation, testing::ValuesIn(planted_violations()));

// -- the reader of shapes -----------------------------------------------------------------------------------------------------------

TEST(SourceShape, Counts_members_and_lines_over_all_files) {
  ShapeReader reader;
  reader.read({"sim/a.h",
               "class World : public Clock {\n public:\n  int run();\n\n private:\n  void go(int step_);\n  int a_ = 0;  // of b_;\n"
               "  double b_, c_;\n  std::function<void(int)> d_;\n  std::array<int, 3> e_{};\n};\n"});
  reader.read({"sim/a.cpp", "int World::run() {\n  a_ = 1;\n  return b_;\n}\n\nint World::one() { return 1; }\n"});
  const ClassShape& shape = reader.shapes().classes.at("sim/World");
  EXPECT_EQ(shape.members, 5U);
  EXPECT_EQ(shape.lines, 11U + 4U);
}

TEST(SourceShape, Finds_functions_whatever_their_signature) {
  ShapeReader reader;
  reader.read({"sim/a.cpp",
               "Result<int> read(int a,\n                 int b) {\n  if (a) {\n  }\n  return b;\n}\n\nWorld::World(int a)\n    : a_(a) {\n"
               "  go();\n}\n\nconstexpr std::array<int, 2> list{\n    1, (2)};\nint declared(int a);\n"});
  ASSERT_EQ(reader.shapes().functions.size(), 2U);
  EXPECT_EQ(reader.shapes().functions[0].name, "read");
  EXPECT_EQ(reader.shapes().functions[0].lines, 6U);
  EXPECT_EQ(reader.shapes().functions[1].name, "World::World");
}

TEST(SourceShape, Large_classes_and_functions_are_named) {
  ShapeReader reader;
  std::string members, body;
  for (int i = 0; i < 21; ++i) members += "  int a" + std::to_string(i) + "_ = 0;\n";
  for (int i = 0; i < 59; ++i) body += "  go();\n";
  reader.read({"sim/a.cpp", "class Large {\n" + members + "};\nvoid Large::f() {\n" + body + "}\n"});
  const auto found = too_large(reader.shapes());
  EXPECT_EQ(found.size(), 2U);
  EXPECT_TRUE(found.contains("sim/Large"));
  EXPECT_TRUE(found.contains("sim/a.cpp Large::f"));
}

}  // namespace
}  // namespace motley
