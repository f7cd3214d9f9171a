// Vectors of 16 floats: x86 servers since 2017, with AVX-512F only. Compiled with -mavx512f.
#include <immintrin.h>

#include "codec/x86/loops.h"
#include "codec/x86/targets.h"

namespace motley::codec {
namespace {

struct Avx512 {
  using Floats = __m512;
  using Ints = __m512i;
  using Doubles = __m512d;
  static constexpr std::size_t width = 16;

  static Floats load(const float* from) { return _mm512_loadu_ps(from); }
  static Doubles load(const double* from) { return _mm512_loadu_pd(from); }
  static Ints load_bits(const float* from) { return _mm512_castps_si512(_mm512_loadu_ps(from)); }
  static void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
  static void store(double* to, Doubles x) { _mm512_storeu_pd(to, x); }
  static void store_bits(float* to, Ints x) { _mm512_storeu_ps(to, _mm512_castsi512_ps(x)); }

  static Floats all(float x) { return _mm512_set1_ps(x); }
  static Ints all(std::int32_t x) { return _mm512_set1_epi32(x); }

  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Doubles add(Doubles a, Doubles b) { return _mm512_add_pd(a, b); }
  static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Floats subtract(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  static Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Doubles multiply(Doubles a, Doubles b) { return _mm512_mul_pd(a, b); }
  static Floats divide(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  static Ints nearest(Floats x) { return _mm512_cvtps_epi32(x); }
  static Floats to_floats(Ints x) { return _mm512_cvtepi32_ps(x); }
  static Doubles widen_low(Floats x) { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
  static Doubles widen_high(Floats x) { return _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1))); }

  static Ints both(Ints a, Ints b) { return _mm512_and_si512(a, b); }
  static Ints either(Ints a, Ints b) { return _mm512_or_si512(a, b); }
  static Ints larger(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
  static Ints smaller(Ints a, Ints b) { return _mm512_min_epi32(a, b); }
  static Ints if_greater(Ints a, Ints b, Ints yes, Ints no) { return _mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(a, b), no, yes); }
  template <int places>
  static Ints left(Ints x) {
    return _mm512_slli_epi32(x, places);
  }
  template <int places>
  static Ints right(Ints x) {
    return _mm512_srli_epi32(x, places);
  }

  static std::int32_t largest(Ints x) { return _mm512_reduce_max_epi32(x); }

  static Ints widen_bytes(const std::byte* from) { return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); }
  static Ints widen_bf16(const std::byte* from) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }

  static void pack_bytes(const Ints* x, std::byte* out) {
    for (int i = 0; i < 2; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + i, _mm512_cvtepi32_epi8(x[i]));
  }
  static void pack_bf16(const Ints* x, std::byte* out) {
    for (int i = 0; i < 2; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out) + i, _mm512_cvtepi32_epi16(x[i]));
  }

  using Table = Floats;
  static Table table(const float* sixteen, float factor) { return multiply(load(sixteen), all(factor)); }
  /// A permutation uses the low four bits of each index and ignores the others.
  template <int>
  static Floats lookup(Table table, Ints index) {
    return _mm512_permutexvar_ps(index, table);
  }
};

}  // namespace

constinit const Kernels avx512_kernels = Loops<Avx512>::kernels;

}  // namespace motley::codec
