// The loops of kernels.h, `lanes` values at a time with the compilers' vector extension and the remainder one by one. Included by one
// source file per instruction set. All functions are members of Loops<lanes>, so that the files share none.
#pragma once
#if defined(__SSE__)
#include <immintrin.h>
#endif

#include "store/kernels.h"

namespace motley::store {

template <int lanes>
struct Loops {
  // NOLINTBEGIN(modernize-use-using): gcc requires typedef here
  typedef float Wide __attribute__((vector_size(lanes * sizeof(float))));
  typedef std::uint16_t Bf16Values __attribute__((vector_size(lanes * sizeof(std::uint16_t))));
  typedef std::uint32_t Bits __attribute__((vector_size(lanes * sizeof(std::uint32_t))));
  // NOLINTEND(modernize-use-using)
  static constexpr std::size_t unrolled = 4;  // vectors in parallel: enough to hide the latency of an addition

  template <class V>
  static constexpr std::size_t width = sizeof(V) == sizeof(float) ? 1 : lanes;

  template <class V>
  static V load(const float* from) {
    V value;
    __builtin_memcpy(&value, from, sizeof(V));
    return value;
  }
  /// bf16 values: the upper 16 bits of floats.
  template <class V>
  static V load(const std::uint16_t* from) {
    if constexpr (sizeof(V) == sizeof(float))
      return widened<V, std::uint16_t, std::uint32_t>(from);
    else
      return widened<V, Bf16Values, Bits>(from);
  }
  /// The types are template arguments because gcc treats the typedefs above as scalars otherwise.
  template <class V, class From, class To>
  static V widened(const std::uint16_t* from) {
    From bf16_values;
    __builtin_memcpy(&bf16_values, from, sizeof(bf16_values));
    To bits;
    if constexpr (sizeof(V) == sizeof(float))
      bits = bf16_values;
    else
      bits = __builtin_convertvector(bf16_values, To);
    bits <<= 16U;
    V value;
    __builtin_memcpy(&value, &bits, sizeof(V));
    return value;
  }
  template <class V>
  static void store(float* to, V value) {
    __builtin_memcpy(to, &value, sizeof(V));
  }

  /// Stores past the caches, so that the processor does not read the memory first. `to` is aligned to a vector. Other threads may read it
  /// after store_fence().
  static void store_non_temporal(float* to, Wide value) {
#if defined(__AVX512F__)
    if constexpr (lanes == 16) return _mm512_stream_ps(to, reinterpret_cast<__m512>(value));
#endif
#if defined(__AVX__)
    if constexpr (lanes == 8) return _mm256_stream_ps(to, reinterpret_cast<__m256>(value));
#endif
#if defined(__SSE__)
    if constexpr (lanes == 4) return _mm_stream_ps(to, reinterpret_cast<__m128>(value));
#endif
    store(to, value);
  }
  static void store_fence() {
#if defined(__SSE__)
    _mm_sfence();
#endif
  }
  /// Number of values before the first aligned vector.
  static std::size_t unaligned_values(const float* from) {
    return (sizeof(Wide) - reinterpret_cast<std::uintptr_t>(from) % sizeof(Wide)) % sizeof(Wide) / sizeof(float);
  }

  template <class V>
  static V root(V x) {
    if constexpr (sizeof(V) == sizeof(float)) {
      return __builtin_sqrtf(x);
    } else {
      for (int lane = 0; lane < lanes; ++lane) x[lane] = __builtin_sqrtf(x[lane]);
      return x;
    }
  }

  /// Calls use() with the address of values i... of a contribution, which may be bf16 only with `maybe_bf16`.
  template <bool maybe_bf16, class Use>
  static void with(const Addend& part, std::size_t i, Use use) {
    if (maybe_bf16 && part.bf16_values != nullptr)
      use(part.bf16_values + i);
    else
      use(part.values + i);
  }

  template <bool maybe_bf16, class V, std::size_t count>
  static void sum_plain(const Sum& sum, std::size_t i, V (&g)[count]) {
    const Addend* part = sum.addends;
    const Addend* const end = part + sum.count;
    with<maybe_bf16>(*part, i, [&](const auto* from) {
      for (std::size_t k = 0; k < count; ++k) g[k] = part->weight * load<V>(from + k * width<V>);
    });
    while (++part != end)
      with<maybe_bf16>(*part, i, [&](const auto* from) {
        for (std::size_t k = 0; k < count; ++k) g[k] += part->weight * load<V>(from + k * width<V>);
      });
  }

  template <class V, std::size_t count>
  static void sum_compensated(const Sum& sum, std::size_t i, const float* w, V (&g)[count]) {
    for (std::size_t k = 0; k < count; ++k) g[k] = V{};
    for (const Addend* part = sum.addends; part != sum.addends + sum.count; ++part)
      for (std::size_t k = 0; k < count; ++k) {
        V counted;
        with<true>(*part, i + k * width<V>, [&](const auto* from) { counted = load<V>(from); });
        if (part->base != nullptr) {
          const V then = load<V>(part->base + i + k * width<V>);
          const V bound = counted < 0.0F ? -counted : counted;
          const V change = sum.compensation * counted * counted * (load<V>(w + i + k * width<V>) - then);
          counted += change < -bound ? -bound : (bound < change ? bound : change);
        }
        g[k] += part->weight * counted;
      }
  }

  /// Calls rule(i, g) for values i... of the sum, as many as g holds.
  template <class Rule>
  static void each(const Sum& sum, std::size_t n, const float* w, Rule rule) {
    if (sum.compensation > 0)
      each_of(n, 0, rule, [&](std::size_t i, auto& g) { sum_compensated(sum, i, w, g); });
    else
      each_plain(sum, n, rule);
  }

  /// The same without compensation. Whether there are bf16 contributions is tested once, outside the loop. The first `alone` values are
  /// computed one by one.
  template <class Rule>
  static void each_plain(const Sum& sum, std::size_t n, Rule rule, std::size_t alone = 0) {
    bool bf16_values = false;
    for (const Addend* part = sum.addends; part != sum.addends + sum.count; ++part)
      bf16_values = bf16_values || part->bf16_values != nullptr;
    if (bf16_values)
      each_of(n, alone, rule, [&](std::size_t i, auto& g) { sum_plain<true>(sum, i, g); });
    else
      each_of(n, alone, rule, [&](std::size_t i, auto& g) { sum_plain<false>(sum, i, g); });
  }

  template <class Rule, class Gradient>
  static void each_of(std::size_t n, std::size_t alone, Rule rule, Gradient gradient) {
    std::size_t i = 0;
    const auto one_by_one = [&](std::size_t end) {
      for (; i < end; ++i) {
        float g[1];
        gradient(i, g);
        rule(i, g[0]);
      }
    };
    one_by_one(alone);
    for (; i + unrolled * lanes <= n; i += unrolled * lanes) {
      Wide g[unrolled];
      gradient(i, g);
      for (std::size_t k = 0; k < unrolled; ++k) rule(i + k * lanes, g[k]);
    }
    one_by_one(n);
  }

  /// Calls one(i, V{}) to cover n values, as many at a time as V holds.
  template <class One>
  static void each(std::size_t n, One one) {
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) one(i, Wide{});
    for (; i < n; ++i) one(i, float{});
  }

  static void add(const Sum& sum, std::size_t n, float* w) {
    each(sum, n, w, [=]<class V>(std::size_t i, V g) { store(w + i, load<V>(w + i) + g); });
  }

  static void sgd(const Sum& sum, const SgdConstants& constants, std::size_t n, float* w, float* v) {
    each(sum, n, w, [=, c = constants]<class V>(std::size_t i, V g) {
      const V before = load<V>(w + i);
      const V moving = c.mu * load<V>(v + i) + (g + c.decay * before);
      store(v + i, moving);
      store(w + i, before - c.rate * moving);
    });
  }

  template <bool non_temporal>
  static void sgd_update_and_look_ahead(const Sum& sum, const SgdConstants& constants, float look_ahead_rate, std::size_t n, const float* w,
                                        const float* v, float* w_after, float* v_after, float* out) {
    const auto keep = []<class V>(float* to, V value) {
      if constexpr (non_temporal && sizeof(V) == sizeof(Wide))
        store_non_temporal(to, value);
      else
        store(to, value);
    };
    const auto rule = [=, c = constants]<class V>(std::size_t i, V g) {
      const V before = load<V>(w + i);
      const V moving = c.mu * load<V>(v + i) + (g + c.decay * before);
      const V after = before - c.rate * moving;
      keep(v_after + i, moving);
      keep(w_after + i, after);
      store(out + i, after - look_ahead_rate * moving);
    };
    each_plain(sum, n, rule, non_temporal ? unaligned_values(w_after) : 0);
  }
  static void sgd_update_and_look_ahead(const Sum& sum, const SgdConstants& constants, float look_ahead_rate, bool non_temporal,
                                        std::size_t n, const float* w, const float* v, float* w_after, float* v_after, float* out) {
    const std::size_t alone = unaligned_values(w_after);
    if (!non_temporal || alone > n || alone != unaligned_values(v_after))
      return sgd_update_and_look_ahead<false>(sum, constants, look_ahead_rate, n, w, v, w_after, v_after, out);
    sgd_update_and_look_ahead<true>(sum, constants, look_ahead_rate, n, w, v, w_after, v_after, out);
    store_fence();
  }

  static void sgd_bypass(const Sum& sum, float look_ahead_rate, float decay, std::size_t n, float* w) {
    each(sum, n, w, [=]<class V>(std::size_t i, V g) {
      const V before = load<V>(w + i);
      store(w + i, before - (look_ahead_rate * g + decay * before));
    });
  }

  template <class V>
  static V adam_direction(const AdamConstants& c, V m, V u) {
    return m * c.unbias1 / (root(u * c.unbias2) + c.epsilon);
  }

  static void adamw(const Sum& sum, const AdamConstants& constants, float rate, std::size_t n, float* w, float* m, float* u) {
    each(sum, n, w, [=, c = constants]<class V>(std::size_t i, V g) {
      const V before = load<V>(w + i);
      const V first = c.beta1 * load<V>(m + i) + c.from_gradient1 * g;
      const V second = c.beta2 * load<V>(u + i) + c.from_gradient2 * (g * g);
      store(m + i, first);
      store(u + i, second);
      store(w + i, before - rate * (adam_direction(c, first, second) + c.decay * before));
    });
  }

  static void adam_bypass(const Sum& sum, const AdamConstants& constants, float rate, float decay, std::size_t n, float* w,
                          const float* u) {
    each(sum, n, w, [=, c = constants]<class V>(std::size_t i, V g) {
      const V before = load<V>(w + i);
      store(w + i, before - (rate * (g / (root(load<V>(u + i) * c.unbias2) + c.epsilon)) + decay * before));
    });
  }

  static void sgd_look_ahead(float look_ahead_rate, std::size_t n, const float* w, const float* v, float* out) {
    each(n, [=]<class V>(std::size_t i, V) { store(out + i, load<V>(w + i) - look_ahead_rate * load<V>(v + i)); });
  }

  static void adam_look_ahead(const AdamConstants& constants, float look_ahead_rate, std::size_t n, const float* w, const float* m,
                              const float* u, float* out) {
    each(n, [=, c = constants]<class V>(std::size_t i, V) {
      store(out + i, load<V>(w + i) - look_ahead_rate * adam_direction(c, load<V>(m + i), load<V>(u + i)));
    });
  }

  static constexpr Kernels table{add, sgd, sgd_update_and_look_ahead, sgd_bypass, adamw, adam_bypass, sgd_look_ahead, adam_look_ahead};
};

}  // namespace motley::store
