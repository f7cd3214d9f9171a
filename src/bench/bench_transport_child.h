// Child processes of a benchmark: forks of this process that exchange numbers with it. Linux.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>

namespace motley::bench {

/// Two pipes on which a child process and its parent exchange numbers.
class NumberPipe {
 public:
  NumberPipe(int in, int out) : in_(in), out_(out) {}
  void send(std::uint64_t number) const;
  /// Throws when the other side has ended.
  [[nodiscard]] std::uint64_t receive() const;
  void close() const;

 private:
  int in_;
  int out_;
};

/// The destructor kills the process.
class Child {
 public:
  /// Fork before any thread is started. The process ends when `work` returns, or with its parent.
  explicit Child(const std::function<void(const NumberPipe& parent)>& work);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  void send(std::uint64_t number) const { line_.send(number); }
  [[nodiscard]] std::uint64_t receive() const { return line_.receive(); }
  /// Processor time so far, of all its threads, in user and kernel mode.
  [[nodiscard]] double processor_seconds() const;

 private:
  pid_t process_ = 0;
  NumberPipe line_{-1, -1};
};

/// Returns the result of a system call, or throws std::system_error with errno when it failed.
long require_success(long returned, const char* call);

}  // namespace motley::bench
