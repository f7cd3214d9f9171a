// Seeded random numbers. A run has one seed; each use takes its own named stream, so that adding a use never changes another.
// Generator: xoshiro256++ (Blackman and Vigna), seeded by splitmix64. Distributions are ours: the standard ones differ between libraries.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace motley {

class Rng {
 public:
  /// The stream `name`, number `index`, of `seed`. Streams with different names or indices are independent.
  Rng(std::uint64_t seed, std::string_view name, std::uint64_t index = 0);

  std::uint64_t bits();
  double uniform();                      // [0, 1)
  std::uint64_t below(std::uint64_t n);  // [0, n), unbiased; n >= 1
  double normal();                       // mean 0, deviation 1
  double exponential(double mean);
  /// exp(N(0, sigma)) scaled to mean 1.
  double log_normal(double sigma);

 private:
  std::array<std::uint64_t, 4> state_{};
};

/// 0..n-1 in random order.
std::vector<std::uint32_t> permutation(std::uint32_t n, Rng rng);

}  // namespace motley
