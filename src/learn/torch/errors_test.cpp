#include "learn/torch/errors.h"

#include <gtest/gtest.h>

namespace motley::learn {
namespace {

template <class Failure>
void fail(const Failure& failure) {
  translate_errors([&]() -> int { throw failure; });
}

TEST(Errors, Results_pass_through) {
  EXPECT_EQ(translate_errors([] { return 3; }), 3);
}

TEST(Errors, Exhausted_memory_is_recognised_by_type_and_text) {
  EXPECT_THROW(fail(std::bad_alloc()), OutOfMemory);
  EXPECT_THROW(fail(std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB")), OutOfMemory);
  EXPECT_THROW(fail(std::runtime_error("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes")), OutOfMemory);
  EXPECT_THROW(fail(std::runtime_error("DefaultCPUAllocator: can't allocate memory")), OutOfMemory);
}

TEST(Errors, Other_exceptions_become_ComputationFailed_with_their_text) {
  try {
    fail(std::runtime_error("cuDNN error"));
    FAIL();
  } catch (const ComputationFailed& failure) {
    EXPECT_STREQ(failure.what(), "cuDNN error");
  }
}

TEST(Errors, Our_bugs_and_translated_exceptions_pass_unchanged) {
  EXPECT_THROW(fail(Bug("out of memory")), Bug);
  EXPECT_THROW(fail(OutOfMemory("x")), OutOfMemory);
  EXPECT_THROW(fail(ComputationFailed("out of memory")), ComputationFailed);
}

}  // namespace
}  // namespace motley::learn
