// The inner loops of the codecs, for each instruction set: one binary selects the best one on the machine that it runs on. The reference is
// plain C++ and runs everywhere; every other target gives the same bits, which kernels_test.cpp checks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/processor.h"

namespace motley::codec {

using motley::Target;  // plain is the reference

/// Sums of squares of the values that error feedback was to send, and of the residual. Value i of a vector adds to sum i mod 16: sixteen
/// sums in a fixed order fill the widest vectors, and every target rounds alike.
struct SquareSums {
  static constexpr std::size_t width = 16;
  double wanted[width]{};
  double residual[width]{};
};

/// Floats to bytes and back, n values of any number. Neither end need be aligned; they do not overlap.
struct EncodeDecode {
  void (*encode)(const float* values, std::size_t n, std::byte* out);
  void (*decode)(const std::byte* bytes, std::size_t n, float* out);
};

/// Stateless, any thread. Plain pointers, because the inline functions of std::span must not be compiled for one instruction set
/// (format.h).
struct Kernels {
  EncodeDecode bits2, bits4, bits8;  // the blocks of bits.h
  EncodeDecode bf16;
  /// The bits of the largest |x|; 0 for no values.
  std::int32_t (*largest_magnitude_bits)(const float* values, std::size_t n);
  /// The same of n bfloat16s, as the bits of the float that the largest |x| is.
  std::int32_t (*largest_bf16_bits)(const std::byte* bf16_values, std::size_t n);
  /// sum = a + b
  void (*add)(const float* a, const float* b, std::size_t n, float* sum);
  /// residual = wanted - sent, and the squares of both added to `sums`, the first value's to sum 0.
  void (*keep_residual)(const float* wanted, const float* sent, std::size_t n, float* residual, SquareSums& sums);
};

/// The targets that this processor can run: the reference first, the fastest last.
[[nodiscard]] std::vector<Target> targets();
/// A target that this processor cannot run is our bug.
[[nodiscard]] const Kernels& kernels_of(Target target);
[[nodiscard]] std::string_view name_of(Target target);

/// The fastest here; looked up once.
[[nodiscard]] Target best_target();
[[nodiscard]] const Kernels& best_kernels();

extern const Kernels reference_kernels;

}  // namespace motley::codec
