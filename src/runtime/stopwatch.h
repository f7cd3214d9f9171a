// Wall time since construction. For benchmarks and measured profiles.
#pragma once
#include <chrono>

namespace motley::runtime {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace motley::runtime
