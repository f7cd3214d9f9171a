// A child process: started, its output read line by line, and its end reported with the reason.
#pragma once
#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley::runtime {

struct ChildEnd {
  bool exited = false;  // with `code`; otherwise killed by `signal`
  int code = 0;
  int signal = 0;
  bool out_of_memory = false;  // killed, and the kernel counted an out-of-memory kill meanwhile
  std::uint64_t peak_rss_bytes = 0;
  [[nodiscard]] bool good() const { return exited && code == 0; }
};
/// "exit code 3", "killed by signal 9 (Killed)", "killed by the kernel: out of memory".
[[nodiscard]] std::string describe(const ChildEnd& end);

struct ChildOptions {
  std::vector<std::string> command;                              // the program, then its arguments
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's own
  bool inherit_errors = false;  // its stderr is that of this process; otherwise it is read together with stdout
};

/// A child receives SIGTERM when its parent dies for any reason. Event-loop thread only.
class Child {
 public:
  struct Callbacks {
    std::function<void(const std::string&)> line;  // of output, without the line end; a very long line comes in pieces
    std::function<void(const ChildEnd&)> ended;    // once, after its last line
  };
  static Result<std::unique_ptr<Child>> start(boost::asio::io_context& event_loop, const ChildOptions& options, Callbacks callbacks);
  /// Kills it if it is still running.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] bool alive() const;
  void signal(int number) const;
  /// The last lines of its output, oldest first.
  [[nodiscard]] const std::deque<std::string>& last_lines() const;

 private:
  struct Inside;
  explicit Child(std::shared_ptr<Inside> inside) : inside_(std::move(inside)) {}
  std::shared_ptr<Inside> inside_;
};

}  // namespace motley::runtime
