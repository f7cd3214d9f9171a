// The loops of an x86 target for vectors of any width; avx2.cpp and avx512.cpp define the vectors. Whole blocks are computed with vectors,
// the remainder with the reference. `Lanes` is in an unnamed namespace, so no function that needs wide vectors has external linkage: the
// linker cannot use one elsewhere in the program.
//
//   Floats, Ints, Doubles    a vector of `width` floats or integers, of width / 2 doubles
//   pack_bytes(Ints[32 / width], out)     32 integers below 2^8 become 32 bytes
//   pack_bf16(Ints[32 / width], out)    32 integers below 2^16 become 64 bytes
//   Table, lookup<b>         16 floats, and the one that the low b bits (2 or 4) of each integer index; for 2 bits the table repeats 4
//   floats
#pragma once
#include <cstring>

#include "codec/format.h"
#include "codec/kernels.h"

namespace motley::codec {

template <class Lanes>
struct Loops {
  using Floats = typename Lanes::Floats;
  using Ints = typename Lanes::Ints;
  using Doubles = typename Lanes::Doubles;
  static constexpr std::size_t width = Lanes::width;
  static constexpr std::size_t packed_values = 32;  // values per packing operation
  static constexpr std::size_t vectors = packed_values / width;

  static Ints magnitudes(const float* values) { return Lanes::both(Lanes::load_bits(values), Lanes::all(magnitude_mask)); }

  static Ints largest_of_block(const float* values) {
    Ints even = magnitudes(values);  // two independent chains of maxima
    Ints odd = magnitudes(values + width);
    for (std::size_t i = 2 * width; i < block_values; i += 2 * width) {
      even = Lanes::larger(even, magnitudes(values + i));
      odd = Lanes::larger(odd, magnitudes(values + i + width));
    }
    return Lanes::larger(even, odd);
  }

  static std::int32_t largest_magnitude_bits(const float* values, std::size_t n) {
    const std::size_t whole = n - n % block_values;
    Ints vector = Lanes::all(0);
    for (std::size_t i = 0; i < whole; i += block_values) vector = Lanes::larger(vector, largest_of_block(values + i));
    const std::int32_t most = Lanes::largest(vector);
    const std::int32_t rest = reference_kernels.largest_magnitude_bits(values + whole, n - whole);
    return most > rest ? most : rest;
  }

  /// Each integer holds two bf16 values; both are compared as magnitudes of floats.
  static Ints larger_of_bf16(Ints largest, const std::byte* bf16_values) {
    const Ints upper = Lanes::all(0x7fff0000);
    const Ints both = Lanes::load_bits(reinterpret_cast<const float*>(bf16_values));
    return Lanes::larger(largest, Lanes::larger(Lanes::both(both, upper), Lanes::both(Lanes::template left<16>(both), upper)));
  }

  static std::int32_t largest_bf16_bits(const std::byte* bf16_values, std::size_t n) {
    constexpr std::size_t at_once = 4 * width;  // two independent chains of maxima
    Ints even = Lanes::all(0);
    Ints odd = Lanes::all(0);
    for (; n >= at_once; n -= at_once, bf16_values += 2 * at_once) {
      even = larger_of_bf16(even, bf16_values);
      odd = larger_of_bf16(odd, bf16_values + at_once);
    }
    const std::int32_t most = Lanes::largest(Lanes::larger(even, odd));
    const std::int32_t rest = reference_kernels.largest_bf16_bits(bf16_values, n);
    return most > rest ? most : rest;
  }

  static float widened(std::uint16_t half) {
    const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }

  // -- blocks -----------------------------------------------------------------------------------------------------------------------

  template <int b>
  static Ints codes(const float* values, Floats divisor) {
    const Floats level = Lanes::multiply(Lanes::divide(Lanes::load(values), divisor), Lanes::all(static_cast<float>(levels<b>)));
    return Lanes::add(Lanes::nearest(level), Lanes::all(levels<b>));
  }

  template <int b>
  static void encode_block(const float* values, std::byte* out) {
    constexpr std::size_t stride = block_values / codes_per_byte<b>;
    const std::int32_t bits = Lanes::largest(largest_of_block(values));
    if (bits >= infinity_bits) {
      std::memcpy(out, &poisoned, scale_bytes);
      std::memset(out + scale_bytes, 0, stride);
      return;
    }
    const std::int32_t up = (bits + 0xffff) >> 16;
    const auto scale = static_cast<std::uint16_t>(up < largest_bf16 ? up : largest_bf16);
    std::memcpy(out, &scale, scale_bytes);
    out += scale_bytes;
    const Floats divisor = Lanes::all(scale == 0 ? 1.0F : widened(scale));
    for (std::size_t j = 0; j < stride; j += packed_values) {
      Ints bytes[vectors];
      for (std::size_t v = 0; v < vectors; ++v) {
        const float* const x = values + j + v * width;
        bytes[v] = codes<b>(x, divisor);
        if constexpr (b <= 4) bytes[v] = Lanes::either(bytes[v], Lanes::template left<b>(codes<b>(x + stride, divisor)));
        if constexpr (b == 2) {
          bytes[v] = Lanes::either(bytes[v], Lanes::template left<4>(codes<b>(x + 2 * stride, divisor)));
          bytes[v] = Lanes::either(bytes[v], Lanes::template left<6>(codes<b>(x + 3 * stride, divisor)));
        }
      }
      Lanes::pack_bytes(bytes, out + j);
    }
  }

  /// There are at most 16 codes: their values are computed once per block and looked up.
  template <int b>
  static void decode_block(const std::byte* bytes, float scale, float* out) {
    static_assert(b == 2 || b == 4);
    constexpr std::size_t stride = block_values / codes_per_byte<b>;
    float steps[16];
    for (int i = 0; i < 16; ++i) steps[i] = static_cast<float>(i % (1 << b) - levels<b>) / static_cast<float>(levels<b>);
    const typename Lanes::Table values = Lanes::table(steps, scale);
    for (std::size_t j = 0; j < stride; j += width) {
      const Ints codes = Lanes::widen_bytes(bytes + j);
      Lanes::store(out + j, Lanes::template lookup<b>(values, codes));
      Lanes::store(out + j + stride, Lanes::template lookup<b>(values, Lanes::template right<b>(codes)));
      if constexpr (b == 2) {
        Lanes::store(out + j + 2 * stride, Lanes::template lookup<b>(values, Lanes::template right<4>(codes)));
        Lanes::store(out + j + 3 * stride, Lanes::template lookup<b>(values, Lanes::template right<6>(codes)));
      }
    }
  }

  static void decode_block_of_bytes(const std::byte* bytes, float scale, float* out) {
    const Floats most = Lanes::all(static_cast<float>(levels<8>));
    for (std::size_t j = 0; j < block_values; j += width) {
      const Floats level = Lanes::to_floats(Lanes::add(Lanes::widen_bytes(bytes + j), Lanes::all(-levels<8>)));
      Lanes::store(out + j, Lanes::multiply(Lanes::divide(level, most), Lanes::all(scale)));
    }
  }

  template <int b>
  static void encode(const float* values, std::size_t n, std::byte* out) {
    for (; n >= block_values; n -= block_values, values += block_values, out += whole_block_bytes<b>) encode_block<b>(values, out);
    reference<b>().encode(values, n, out);
  }

  template <int b>
  static void decode(const std::byte* bytes, std::size_t n, float* out) {
    for (; n >= block_values; n -= block_values, bytes += whole_block_bytes<b>, out += block_values) {
      std::uint16_t scale = 0;
      std::memcpy(&scale, bytes, scale_bytes);
      if constexpr (b == 8)
        decode_block_of_bytes(bytes + scale_bytes, widened(scale), out);
      else
        decode_block<b>(bytes + scale_bytes, widened(scale), out);
    }
    reference<b>().decode(bytes, n, out);
  }

  template <int b>
  static const EncodeDecode& reference() {
    if constexpr (b == 2) return reference_kernels.bits2;
    if constexpr (b == 4) return reference_kernels.bits4;
    if constexpr (b == 8) return reference_kernels.bits8;
  }

  // -- bfloat16 ---------------------------------------------------------------------------------------------------------------------

  /// The steps of rounded() in reference.cpp.
  static Ints rounded(Ints bits) {
    const Ints infinity = Lanes::all(infinity_bits);
    const Ints magnitude = Lanes::both(bits, Lanes::all(magnitude_mask));
    const Ints upper = Lanes::template right<16>(magnitude);
    const Ints half_step = Lanes::add(Lanes::all(0x7fff), Lanes::both(upper, Lanes::all(1)));
    const Ints nearest = Lanes::template right<16>(Lanes::add(magnitude, half_step));
    const Ints finite = Lanes::smaller(nearest, Lanes::all(largest_bf16));
    const Ints nan = Lanes::either(upper, Lanes::all(quiet_nan_bit));
    const Ints not_finite = Lanes::if_greater(magnitude, infinity, nan, upper);
    const Ints sign = Lanes::both(Lanes::template right<16>(bits), Lanes::all(0x8000));
    return Lanes::either(Lanes::if_greater(infinity, magnitude, finite, not_finite), sign);
  }

  static void encode_bf16(const float* values, std::size_t n, std::byte* out) {
    for (; n >= packed_values; n -= packed_values, values += packed_values, out += 2 * packed_values) {
      Ints bf16_values[vectors];
      for (std::size_t v = 0; v < vectors; ++v) bf16_values[v] = rounded(Lanes::load_bits(values + v * width));
      Lanes::pack_bf16(bf16_values, out);
    }
    reference_kernels.bf16.encode(values, n, out);
  }

  static void decode_bf16(const std::byte* bytes, std::size_t n, float* out) {
    for (; n >= width; n -= width, bytes += 2 * width, out += width)
      Lanes::store_bits(out, Lanes::template left<16>(Lanes::widen_bf16(bytes)));
    reference_kernels.bf16.decode(bytes, n, out);
  }

  // -- error feedback ---------------------------------------------------------------------------------------------------------------

  static void add(const float* a, const float* b, std::size_t n, float* sum) {
    const std::size_t whole = n - n % width;
    for (std::size_t i = 0; i < whole; i += width) Lanes::store(sum + i, Lanes::add(Lanes::load(a + i), Lanes::load(b + i)));
    reference_kernels.add(a + whole, b + whole, n - whole, sum + whole);
  }

  /// Adds the squares of x to two of the sums.
  static void add_squares(Floats x, Doubles* sums) {
    const Doubles low = Lanes::widen_low(x), high = Lanes::widen_high(x);
    sums[0] = Lanes::add(sums[0], Lanes::multiply(low, low));
    sums[1] = Lanes::add(sums[1], Lanes::multiply(high, high));
  }

  static void keep_residual(const float* wanted, const float* sent, std::size_t n, float* residual, SquareSums& sums) {
    constexpr std::size_t doubles = width / 2, parts = SquareSums::width / doubles;
    Doubles squared_wanted[parts], squared_residual[parts];
    for (std::size_t k = 0; k < parts; ++k) {
      squared_wanted[k] = Lanes::load(sums.wanted + k * doubles);
      squared_residual[k] = Lanes::load(sums.residual + k * doubles);
    }
    const std::size_t whole = n - n % SquareSums::width;
    for (std::size_t i = 0; i < whole; i += SquareSums::width)
      for (std::size_t k = 0; k < parts; k += 2) {
        const std::size_t at = i + k * doubles;
        const Floats p = Lanes::load(wanted + at);
        const Floats e = Lanes::subtract(p, Lanes::load(sent + at));
        Lanes::store(residual + at, e);
        add_squares(p, squared_wanted + k);
        add_squares(e, squared_residual + k);
      }
    for (std::size_t k = 0; k < parts; ++k) {
      Lanes::store(sums.wanted + k * doubles, squared_wanted[k]);
      Lanes::store(sums.residual + k * doubles, squared_residual[k]);
    }
    reference_kernels.keep_residual(wanted + whole, sent + whole, n - whole, residual + whole, sums);
  }

  static constexpr Kernels kernels{.bits2 = {encode<2>, decode<2>},
                                   .bits4 = {encode<4>, decode<4>},
                                   .bits8 = {encode<8>, decode<8>},
                                   .bf16 = {encode_bf16, decode_bf16},
                                   .largest_magnitude_bits = largest_magnitude_bits,
                                   .largest_bf16_bits = largest_bf16_bits,
                                   .add = add,
                                   .keep_residual = keep_residual};
};

}  // namespace motley::codec
