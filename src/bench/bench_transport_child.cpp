#include "bench/bench_transport_child.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <system_error>

namespace motley::bench {

long require_success(long returned, const char* call) {
  if (returned < 0) throw std::system_error(errno, std::generic_category(), call);
  return returned;
}

void NumberPipe::send(std::uint64_t number) const { require_success(::write(out_, &number, sizeof(number)), "write to a pipe"); }

std::uint64_t NumberPipe::receive() const {
  std::uint64_t number = 0;
  const long got = require_success(::read(in_, &number, sizeof(number)), "read from a pipe");
  if (got != sizeof(number)) throw std::runtime_error("a process of the benchmark has ended early");
  return number;
}

void NumberPipe::close() const {
  ::close(in_);
  ::close(out_);
}

Child::Child(const std::function<void(const NumberPipe& parent)>& work) {
  std::array<int, 2> down{};
  std::array<int, 2> up{};
  require_success(::pipe(down.data()), "pipe");
  require_success(::pipe(up.data()), "pipe");
  process_ = static_cast<pid_t>(require_success(::fork(), "fork"));
  if (process_ != 0) {
    ::close(down[0]);
    ::close(up[1]);
    line_ = NumberPipe(up[0], down[1]);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(down[1]);
  ::close(up[0]);
  int code = EXIT_SUCCESS;
  try {
    work(NumberPipe(down[0], up[1]));
  } catch (const std::exception& e) {
    fmt::print(stderr, "a process of the benchmark failed: {}\n", e.what());
    code = EXIT_FAILURE;
  }
  ::_exit(code);
}

double Child::processor_seconds() const {
  clockid_t clock{};
  timespec used{};
  require_success(-::clock_getcpuclockid(process_, &clock), "clock_getcpuclockid");
  require_success(::clock_gettime(clock, &used), "clock_gettime");
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

Child::~Child() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  line_.close();
}

}  // namespace motley::bench
