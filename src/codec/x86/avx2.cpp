// Vectors of 8 floats: x86 since 2013. Compiled with -mavx2.
#include <immintrin.h>

#include "codec/x86/loops.h"
#include "codec/x86/targets.h"

namespace motley::codec {
namespace {

struct Avx2 {
  using Floats = __m256;
  using Ints = __m256i;
  using Doubles = __m256d;
  static constexpr std::size_t width = 8;

  static Floats load(const float* from) { return _mm256_loadu_ps(from); }
  static Doubles load(const double* from) { return _mm256_loadu_pd(from); }
  static Ints load_bits(const float* from) { return _mm256_castps_si256(_mm256_loadu_ps(from)); }
  static void store(float* to, Floats x) { _mm256_storeu_ps(to, x); }
  static void store(double* to, Doubles x) { _mm256_storeu_pd(to, x); }
  static void store_bits(float* to, Ints x) { _mm256_storeu_ps(to, _mm256_castsi256_ps(x)); }

  static Floats all(float x) { return _mm256_set1_ps(x); }
  static Ints all(std::int32_t x) { return _mm256_set1_epi32(x); }

  static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Doubles add(Doubles a, Doubles b) { return _mm256_add_pd(a, b); }
  static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  static Floats subtract(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
  static Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Doubles multiply(Doubles a, Doubles b) { return _mm256_mul_pd(a, b); }
  static Floats divide(Floats a, Floats b) { return _mm256_div_ps(a, b); }
  static Ints nearest(Floats x) { return _mm256_cvtps_epi32(x); }
  static Floats to_floats(Ints x) { return _mm256_cvtepi32_ps(x); }
  static Doubles widen_low(Floats x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
  static Doubles widen_high(Floats x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }

  static Ints both(Ints a, Ints b) { return _mm256_and_si256(a, b); }
  static Ints either(Ints a, Ints b) { return _mm256_or_si256(a, b); }
  static Ints larger(Ints a, Ints b) { return _mm256_max_epi32(a, b); }
  static Ints smaller(Ints a, Ints b) { return _mm256_min_epi32(a, b); }
  static Ints if_greater(Ints a, Ints b, Ints yes, Ints no) { return _mm256_blendv_epi8(no, yes, _mm256_cmpgt_epi32(a, b)); }
  template <int places>
  static Ints left(Ints x) {
    return _mm256_slli_epi32(x, places);
  }
  template <int places>
  static Ints right(Ints x) {
    return _mm256_srli_epi32(x, places);
  }

  static std::int32_t largest(Ints x) {
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(2, 3, 0, 1)));
    return _mm_cvtsi128_si32(four);
  }

  static Ints widen_bytes(const std::byte* from) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))); }
  static Ints widen_bf16(const std::byte* from) { return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); }

  /// AVX2 packs within each 128-bit lane: a permutation restores the order across lanes.
  static void pack_bytes(const Ints* x, std::byte* out) {
    const Ints mixed = _mm256_packus_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
    const Ints order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<Ints*>(out), _mm256_permutevar8x32_epi32(mixed, order));
  }
  static void pack_bf16(const Ints* x, std::byte* out) {
    for (int pair = 0; pair < 2; ++pair) {
      const Ints mixed = _mm256_packus_epi32(x[2 * pair], x[2 * pair + 1]);
      const Ints ordered = _mm256_permute4x64_epi64(mixed, _MM_SHUFFLE(3, 1, 2, 0));
      _mm256_storeu_si256(reinterpret_cast<Ints*>(out) + pair, ordered);
    }
  }

  struct Table {
    Floats low, high;
  };
  static Table table(const float* sixteen, float factor) {
    return {multiply(load(sixteen), all(factor)), multiply(load(sixteen + 8), all(factor))};
  }
  /// A permutation uses the low three bits of each index; the fourth, shifted to the sign bit, selects one of two tables.
  template <int b>
  static Floats lookup(const Table& table, Ints index) {
    const Floats low = _mm256_permutevar8x32_ps(table.low, index);
    if constexpr (b == 2) return low;
    return _mm256_blendv_ps(low, _mm256_permutevar8x32_ps(table.high, index), _mm256_castsi256_ps(left<28>(index)));
  }
};

}  // namespace

constinit const Kernels avx2_kernels = Loops<Avx2>::kernels;

}  // namespace motley::codec
