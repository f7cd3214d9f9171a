// Session from arguments and environment, and Job from a file.
#include <fmt/format.h>
#include <motley/failure.h>
#include <motley/job.h>
#include <motley/session.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

namespace motley {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Failure(Failure::Kind::bad_input, message); }

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string trimmed(std::string text) {
  constexpr std::string_view blanks = " \t\r\n";
  text.erase(0, std::min(text.find_first_not_of(blanks), text.size()));
  text.erase(text.find_last_not_of(blanks) + 1);
  return text;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line) || (line = trimmed(line)).empty())
    refuse(fmt::format("--token-file {}: found no line of text, expected a file with the secret in its first line", path));
  return line;
}

std::uint32_t read_count(const std::string& text) {
  std::uint32_t count = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failed != std::errc{} || end != text.data() + text.size())
    refuse(fmt::format("--local-workers: found \"{}\", expected a number of workers", text));
  return count;
}

constexpr std::array<std::string_view, 5> argument_names{"--join", "--node", "--listen", "--local-workers", "--token-file"};

bool is_ours(std::string_view name) { return std::find(argument_names.begin(), argument_names.end(), name) != argument_names.end(); }

void set(std::string_view name, const std::string& value, Session& session) {
  if (name == "--join") session.join = value;
  if (name == "--node") session.node = value;
  if (name == "--listen") session.listen = value;
  if (name == "--local-workers") session.local_workers = read_count(value);
  if (name == "--token-file") session.token = first_line(value);
}

}  // namespace

Session join(int& argc, char** argv) {
  Session session;
  session.join = from_environment("MOTLEY_CHIEF");
  session.token = trimmed(from_environment("MOTLEY_TOKEN"));
  session.log = [](const std::string& sentence) { fmt::print(stderr, "{}\n", sentence); };
  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (i == 0 || !is_ours(name)) {
      argv[kept++] = argv[i];
      continue;
    }
    if (equals == std::string::npos && i + 1 == argc) refuse(fmt::format("{}: found no value, expected one", name));
    set(name, equals == std::string::npos ? argv[++i] : argument.substr(equals + 1), session);
  }
  argc = kept;
  argv[argc] = nullptr;
  if (!session.join.empty() && !session.listen.empty())
    refuse("--listen: found it beside a chief to join, expected one of the two: a process is a chief or a worker");
  return session;
}

Job read_job(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse(fmt::format("{}: this job file cannot be read", file.string()));
  Job job;
  job.text.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  if (in.bad()) refuse(fmt::format("{}: this job file cannot be read", file.string()));
  job.name = file.stem().string();
  return job;
}

}  // namespace motley
