// Versions and settings of torch and its BLAS.
#include "learn/torch/backend.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "learn/learner.h"

namespace motley::learn {

namespace {

/// A function of the BLAS that the process has loaded; null if that BLAS lacks it.
template <class Function>
Function* blas_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::string describe_blas() {
  if (at::hasMKL()) return "MKL";
  auto* const config = blas_function<char*()>("openblas_get_config");  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  auto* const core = blas_function<char*()>("openblas_get_corename");
  if (config != nullptr && core != nullptr) {
    const std::string text = config();
    return fmt::format("{} for {}", text.substr(0, text.find(' ', text.find(' ') + 1)), core());
  }
  return "a BLAS that is not OpenBLAS (40x slower if it is the reference one: apt-get install libopenblas0-pthread)";
}

}  // namespace

bool available() { return true; }

int gpus() { return at::hasCUDA() ? static_cast<int>(c10::impl::VirtualGuardImpl(at::kCUDA).deviceCount()) : 0; }

void use_precision(const std::string& precision) {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(precision != "fp32");
  context.setAllowTF32CuDNN(precision != "fp32");
  // cuDNN's search for the fastest algorithm takes seconds for each new batch size, and batch sizes of workers change.
  context.setBenchmarkCuDNN(false);
}

std::string describe_backend() {
  return fmt::format("libtorch {}, {}, {} threads, {}", TORCH_VERSION, describe_blas(), at::get_num_threads(),
                     gpus() == 0 ? "no GPU" : fmt::format("{} GPU{}", gpus(), gpus() == 1 ? "" : "s"));
}

void use_threads(int count) {
  at::set_num_threads(count);
  // OpenBLAS has a thread pool of its own, which torch does not configure.
  if (auto* set = blas_function<void(int)>("openblas_set_num_threads")) set(count);
}

}  // namespace motley::learn
