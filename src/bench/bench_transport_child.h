// Processes of a benchmark: each a fork of this one, told when to begin and asked when it is done. Linux.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>

namespace motley::bench {

/// What a forked process and its parent say to each other: numbers, over two pipes.
class Line {
 public:
  Line(int in, int out) : in_(in), out_(out) {}
  void say(std::uint64_t number) const;
  /// Throws when the other side is gone.
  [[nodiscard]] std::uint64_t hear() const;
  void close() const;

 private:
  int in_;
  int out_;
};

/// Destroying it kills the process.
class Child {
 public:
  /// Fork before any thread is started. The process ends when `work` returns, and with its parent.
  explicit Child(const std::function<void(const Line& parent)>& work);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  void say(std::uint64_t number) const { line_.say(number); }
  [[nodiscard]] std::uint64_t hear() const { return line_.hear(); }
  /// Processor time that it has used so far, in all its threads and in the kernel for it.
  [[nodiscard]] double processor_seconds() const;

 private:
  pid_t process_ = 0;
  Line line_{-1, -1};
};

/// Throws std::system_error with errno when a system call has failed; gives back what it returned otherwise.
long must(long returned, const char* call);

}  // namespace motley::bench
