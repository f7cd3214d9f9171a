#include "runtime/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <istream>
#include <optional>
#include <string_view>

#include "runtime/constants.h"

namespace motley::runtime {
namespace {

/// The number of out-of-memory kills since the machine was booted.
std::uint64_t out_of_memory_kills() {
  std::ifstream file("/proc/vmstat");
  for (std::string key, value; file >> key >> value;)
    if (key == "oom_kill") return std::stoull(value);
  return 0;
}

/// The environment of this process with `added`, which replace entries of the same name; as "KEY=value".
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view held(*entry);
    const bool replaced = std::any_of(added.begin(), added.end(), [&](const auto& pair) { return held.starts_with(pair.first + "="); });
    if (!replaced) all.emplace_back(held);
  }
  for (const auto& [key, value] : added) all.push_back(key + "=" + value);
  return all;
}

/// Null-terminated, as exec() requires; valid as long as `words` is.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Runs in the child between fork and exec: calls only async-signal-safe functions.
[[noreturn]] void become(char* const* arguments, char* const* environment, int output, bool inherit_errors, pid_t parent) {
  setpgid(0, 0);  // Ctrl-C signals the launcher alone, which stops its children in order
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  dup2(output, STDOUT_FILENO);
  if (!inherit_errors) dup2(output, STDERR_FILENO);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  execvpe(arguments[0], arguments, environment);
  const char* message = "cannot be executed\n";
  (void)!write(STDOUT_FILENO, message, std::strlen(message));
  _exit(127);
}

}  // namespace

std::string describe(const ChildEnd& end) {
  if (end.exited) return fmt::format("exit code {}", end.code);
  if (end.out_of_memory) return "killed by the kernel: out of memory";
  return fmt::format("killed by signal {} ({})", end.signal, strsignal(end.signal));
}

struct Child::Inside : std::enable_shared_from_this<Child::Inside> {
  Inside(boost::asio::io_context& event_loop, Callbacks h, pid_t p, int pid_fd, int output_fd)
      : callbacks(std::move(h)), pid(p), process(event_loop, pid_fd), output(event_loop, output_fd), oom_before(out_of_memory_kills()) {}

  Callbacks callbacks;
  pid_t pid;
  boost::asio::posix::stream_descriptor process;
  boost::asio::posix::stream_descriptor output;
  boost::asio::streambuf buffer{longest_output_line};
  std::deque<std::string> lines;
  std::uint64_t oom_before;
  std::optional<ChildEnd> end;
  bool silent = false;  // its output has ended
  bool abandoned = false;

  void start() {
    read();
    process.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                       [self = shared_from_this()](const boost::system::error_code& failed) {
                         if (!failed) self->reap();
                       });
  }

  void read() {
    boost::asio::async_read_until(output, buffer, '\n', [self = shared_from_this()](const boost::system::error_code& failed, std::size_t) {
      std::istream in(&self->buffer);
      std::string line;
      if (failed == boost::asio::error::not_found) {  // the buffer is full and holds no line end
        line.resize(self->buffer.size());
        in.read(line.data(), static_cast<std::streamsize>(line.size()));
        self->wrote(line);
        return self->read();
      }
      if (failed) {
        if (std::getline(in, line) && !line.empty()) self->wrote(line);
        self->silent = true;
        return self->tell_end();
      }
      std::getline(in, line);
      self->wrote(line);
      self->read();
    });
  }

  void wrote(const std::string& line) {
    lines.push_back(line);
    if (lines.size() > kept_output_lines) lines.pop_front();
    if (callbacks.line && !abandoned) callbacks.line(line);
  }

  void reap() {
    int status = 0;
    rusage usage{};
    if (wait4(pid, &status, 0, &usage) != pid) return;
    ChildEnd how;
    how.exited = WIFEXITED(status);
    how.code = how.exited ? WEXITSTATUS(status) : 0;
    how.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    how.out_of_memory = how.signal == SIGKILL && out_of_memory_kills() > oom_before;
    how.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
    end = how;
    tell_end();
  }

  void tell_end() {
    if (!end || !silent || abandoned) return;
    abandoned = true;
    if (callbacks.ended) callbacks.ended(*end);
  }
};

Result<std::unique_ptr<Child>> Child::start(boost::asio::io_context& event_loop, const ChildOptions& options, Callbacks callbacks) {
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return world_failed(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  std::vector<std::string> command = options.command;
  std::vector<std::string> environment = environment_with(options.environment);
  const std::vector<char*> arguments = pointers_to(command);
  const std::vector<char*> variables = pointers_to(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    const std::string why = std::strerror(errno);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return world_failed(fmt::format("cannot start {}: {}", options.command.front(), why));
  }
  if (pid == 0) become(arguments.data(), variables.data(), pipe_ends[1], options.inherit_errors, parent);
  close(pipe_ends[1]);
  const int pid_fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));  // glibc 2.36 declares its own for C only
  if (pid_fd < 0) {
    const std::string why = std::strerror(errno);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    close(pipe_ends[0]);
    return world_failed(fmt::format("cannot watch {}: {}", options.command.front(), why));
  }
  auto inside = std::make_shared<Inside>(event_loop, std::move(callbacks), pid, pid_fd, pipe_ends[0]);
  inside->start();
  return std::unique_ptr<Child>(new Child(std::move(inside)));
}

Child::~Child() {
  inside_->abandoned = true;
  if (!inside_->end) {
    kill(inside_->pid, SIGKILL);
    waitpid(inside_->pid, nullptr, 0);
    inside_->end.emplace();
  }
  boost::system::error_code ignored;
  inside_->process.close(ignored);
  inside_->output.close(ignored);
}

pid_t Child::pid() const { return inside_->pid; }
bool Child::alive() const { return !inside_->end.has_value(); }
void Child::signal(int number) const {
  if (alive()) kill(inside_->pid, number);
}
const std::deque<std::string>& Child::last_lines() const { return inside_->lines; }

}  // namespace motley::runtime
