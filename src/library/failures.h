// Throws the library's exception for the errors of the modules below.
#pragma once
#include <motley/failure.h>

#include "base/result.h"

namespace motley::library {

[[noreturn]] inline void throw_failure(const Error& error) {
  throw Failure(error.next == Next::tell_user ? Failure::Kind::bad_input : Failure::Kind::training, error.message);
}

/// The value of a result that is good.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw_failure(result.error());
  return std::move(*result);
}

}  // namespace motley::library
