// Counts the arithmetic of torch's operations on this thread during the object's lifetime, by torch's interface for profilers.
//
// Rule: an operation costs a multiply-add for each term of each value it puts out: the reduced width for matrix products and convolutions,
//   one for all others. Counted from shapes, so it is the same on every machine.
#pragma once
#include <ATen/record_function.h>

#include <memory>

namespace motley::learn {

/// At most one at a time on a thread.
class ArithmeticCounter {
 public:
  ArithmeticCounter();
  ~ArithmeticCounter();
  ArithmeticCounter(const ArithmeticCounter&) = delete;
  ArithmeticCounter& operator=(const ArithmeticCounter&) = delete;
  [[nodiscard]] double multiply_adds() const { return multiply_adds_; }

 private:
  static std::unique_ptr<at::ObserverContext> began(const at::RecordFunction& operation);
  static void ended(const at::RecordFunction& operation, at::ObserverContext* context);

  at::CallbackHandle handle_;
  int depth_ = 0;  // of nested operations: only the outermost counts
  double multiply_adds_ = 0;
};

}  // namespace motley::learn
