// Real processes for whole-system tests: started, observed, killed, waited for. There are no sleeps of fixed length: tests wait for
// conditions, and the limit only prevents a test from hanging.
#pragma once
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace real {

namespace fs = std::filesystem;

inline constexpr std::chrono::seconds hang_guard{180};  // an overloaded machine starts a process in several seconds

inline std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Polls until the condition holds. False: it did not in time.
template <class Condition>
bool wait_until(Condition holds) {
  const auto limit = std::chrono::steady_clock::now() + hang_guard;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// The end of a process; neither set: it still ran at the limit.
struct End {
  std::optional<int> code;
  std::optional<int> signal;
};

/// A child process whose output goes to files. It is killed with the test.
class Program {
 public:
  /// `name`: of the two output files in `folder`, its working directory.
  Program(std::vector<std::string> command, const fs::path& folder, const std::string& name,
          const std::vector<std::pair<std::string, std::string>>& environment = {})
      : out_(folder / (name + ".out")), err_(folder / (name + ".err")) {
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || chdir(folder.c_str()) != 0) _exit(127);
    const int out = open(out_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), err = open(err_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    for (const auto& [key, value] : environment) setenv(key.c_str(), value.c_str(), 1);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  ~Program() {
    if (pid_ <= 0 || ended_) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Program(Program&& other) noexcept
      : out_(std::move(other.out_)), err_(std::move(other.err_)), pid_(std::exchange(other.pid_, -1)), ended_(other.ended_) {}
  Program& operator=(Program&&) = delete;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool alive() {
    reap(WNOHANG);
    return !ended_;
  }
  void signal(int number) {
    if (alive()) kill(pid_, number);
  }
  End wait() {
    wait_until([&] { return !alive(); });
    return ended_.value_or(End{});
  }
  [[nodiscard]] std::string out() const { return text_of(out_); }
  [[nodiscard]] std::string err() const { return text_of(err_); }
  /// Waits until stderr contains `words`. False: the process or the time ended without them.
  bool says(const std::string& words) {
    bool reported = false;
    wait_until([&] {
      const bool over = !alive();  // checked before reading, so that the last output counts
      reported = err().find(words) != std::string::npos;
      return reported || over;
    });
    return reported;
  }

 private:
  void reap(int how) {
    int status = 0;
    if (ended_ || waitpid(pid_, &status, how) != pid_) return;
    ended_.emplace();
    if (WIFEXITED(status)) ended_->code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ended_->signal = WTERMSIG(status);
  }

  fs::path out_, err_;
  pid_t pid_ = -1;
  std::optional<End> ended_;
};

/// The command line of a process; empty when it has ended.
inline std::vector<std::string> command_of(pid_t pid) {
  std::vector<std::string> words;
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

/// The live children of a process.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = text_of(entry.path() / "stat");  // pid (name) state parent ...; the name may contain any character
    const std::size_t close = stat.rfind(')');
    if (close == std::string::npos || close + 4 > stat.size()) continue;
    const char state = stat[close + 2];
    if (state != 'Z' && std::atoi(stat.c_str() + close + 4) == parent) children.push_back(std::stoi(name));
  }
  return children;
}

/// The worker processes that a launcher has started, by node name.
inline std::map<std::string, pid_t> workers_of(const Program& launcher) {
  std::map<std::string, pid_t> workers;
  for (const pid_t child : children_of(launcher.pid())) {
    const std::vector<std::string> words = command_of(child);
    if (words.size() < 2 || (words[1] != "worker" && words[1] != "stage")) continue;
    for (std::size_t i = 2; i + 1 < words.size(); ++i)
      if (words[i] == "--node") workers[words[i + 1]] = child;
  }
  return workers;
}

/// A child of a launcher with this command; none while there is none.
inline std::optional<pid_t> child_that(const Program& launcher, const std::string& command) {
  for (const pid_t child : children_of(launcher.pid())) {
    const std::vector<std::string> words = command_of(child);
    if (words.size() > 1 && words[1] == command) return child;
  }
  return std::nullopt;
}
inline std::optional<pid_t> chief_of(const Program& launcher) { return child_that(launcher, "chief"); }
inline std::optional<pid_t> server_of(const Program& launcher) { return child_that(launcher, "server"); }

}  // namespace real
