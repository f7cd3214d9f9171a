#include "base/rng.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

std::uint64_t splitmix(std::uint64_t& x) {
  x += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = x;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

Rng::Rng(std::uint64_t seed, std::string_view name, std::uint64_t index) {
  std::uint64_t x = seed;
  std::uint64_t mixed = splitmix(x) ^ fnv1a(name);
  mixed = splitmix(mixed) ^ index;
  for (auto& word : state_) word = splitmix(mixed);
}

std::uint64_t Rng::bits() {
  auto& s = state_;
  const std::uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
  const std::uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  return result;
}

double Rng::uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

std::uint64_t Rng::below(std::uint64_t n) {
  check(n >= 1, "a random choice has at least one alternative");
  const std::uint64_t reject = (0 - n) % n;  // 2^64 mod n: values below it are rejected, because they would favour small results
  for (;;) {
    const std::uint64_t x = bits();
    if (x >= reject) return x % n;
  }
}

double Rng::normal() {
  const double u = 1.0 - uniform();  // (0, 1], so that the logarithm exists
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform());
}

double Rng::exponential(double mean) { return -mean * std::log(1.0 - uniform()); }

double Rng::log_normal(double sigma) { return std::exp(sigma * normal() - 0.5 * sigma * sigma); }

std::vector<std::uint32_t> permutation(std::uint32_t n, Rng rng) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  return order;
}

}  // namespace motley
