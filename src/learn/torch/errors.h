// The one place where exceptions of torch, and of the system below it, become those of base/gradient_source.h.
#pragma once
#include <new>
#include <stdexcept>
#include <string_view>

#include "base/check.h"
#include "base/gradient_source.h"

namespace motley::learn {

/// Calls `compute` and returns its result. Our own bugs pass through unchanged, as does what is translated already.
template <class Compute>
auto translate_errors(Compute compute) {
  try {
    return compute();
  } catch (const Bug&) {
    throw;
  } catch (const OutOfMemory&) {
    throw;
  } catch (const ComputationFailed&) {
    throw;
  } catch (const std::bad_alloc& failure) {
    throw OutOfMemory(failure.what());
  } catch (const std::exception& failure) {
    const std::string_view what = failure.what();
    // Torch 1.13 and 2.x share no exception type for this; the texts are of CUDA, of the CPU allocator and of mmap.
    if (what.find("out of memory") != std::string_view::npos || what.find("not enough memory") != std::string_view::npos ||
        what.find("can't allocate memory") != std::string_view::npos)
      throw OutOfMemory(failure.what());
    throw ComputationFailed(failure.what());
  }
}

}  // namespace motley::learn
