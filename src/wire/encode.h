// Encodes described structs as bytes and decodes them: one generic writer, one generic reader that validates its input.
//
//   integer: little-endian, its own width      bool: one byte, 0 or 1          enum: its integer, one of its described values
//   double: its bits                           Id, Count: their number         Duration: nanoseconds:i64
//   string, vector: count:u32 items            struct: its described members in order
#pragma once
#include <fmt/format.h>

#include <bit>
#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/lease.h"
#include "base/time.h"

namespace motley {
BOOST_DESCRIBE_STRUCT(Range, (), (epoch, first, last))
BOOST_DESCRIBE_STRUCT(Lease, (), (ranges))
}  // namespace motley

namespace motley::wire {

using Bytes = std::vector<std::byte>;

template <class T>
inline constexpr bool is_named_number = false;
template <class Tag>
inline constexpr bool is_named_number<Id<Tag>> = true;
template <class Tag>
inline constexpr bool is_named_number<Count<Tag>> = true;

/// std::string, std::vector, small_vector.
template <class T>
concept List = requires(T list) {
  typename T::value_type;
  list.resize(list.size());
};

template <class T>
using Members = boost::describe::describe_members<T, boost::describe::mod_public>;

// writing --------------------------------------------------------------------------------------------------------------------------

/// Appends written numbers to bytes ...
struct Appender {
  Bytes& out;
  void put(std::uint64_t number, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) out.push_back(static_cast<std::byte>(number >> (8 * i)));
  }
};
/// ... or only counts their size.
struct Counter {
  std::size_t bytes = 0;
  void put(std::uint64_t, std::size_t width) { bytes += width; }
};

template <class Sink, class T>
void write(Sink& sink, const T& x) {
  if constexpr (std::is_enum_v<T>) {
    write(sink, static_cast<std::underlying_type_t<T>>(x));
  } else if constexpr (std::integral<T>) {
    sink.put(static_cast<std::uint64_t>(x), sizeof(T));
  } else if constexpr (std::same_as<T, double>) {
    sink.put(std::bit_cast<std::uint64_t>(x), sizeof(T));
  } else if constexpr (is_named_number<T>) {
    write(sink, x.value);
  } else if constexpr (std::same_as<T, Duration>) {
    write(sink, std::int64_t{x.count()});
  } else if constexpr (List<T>) {
    check(x.size() <= std::numeric_limits<std::uint32_t>::max(), "an encoded list has fewer than 2^32 items");
    sink.put(x.size(), sizeof(std::uint32_t));
    for (const auto& item : x) write(sink, item);
  } else {
    boost::mp11::mp_for_each<Members<T>>([&](auto member) { write(sink, x.*member.pointer); });
  }
}

template <class T>
[[nodiscard]] std::size_t written_bytes(const T& x) {
  Counter counter;
  write(counter, x);
  return counter.bytes;
}

// reading --------------------------------------------------------------------------------------------------------------------------

/// The bytes still to be read and, after an error, its position and reason. Allocates nothing before the bytes for it are present.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  [[nodiscard]] std::size_t left() const { return left_.size(); }
  /// "lease.ranges: claims 7 items, but 3 bytes are left".
  [[nodiscard]] std::string problem() const { return where_.empty() ? what_ : where_ + ": " + what_; }

  [[nodiscard]] bool take(std::uint64_t& number, std::size_t width) {
    if (left() < width) return fail(fmt::format("needs {} bytes, but {} are left", width, left()));
    number = 0;
    for (std::size_t i = 0; i < width; ++i) number |= std::to_integer<std::uint64_t>(left_[i]) << (8 * i);
    left_ = left_.subspan(width);
    return true;
  }
  bool fail(std::string what) {
    what_ = std::move(what);
    return false;
  }
  /// A failure within member `name`; adds the member to the path of the error.
  bool fail_within(std::string_view name) {
    where_ = where_.empty() ? std::string(name) : fmt::format("{}.{}", name, where_);
    return false;
  }

 private:
  std::span<const std::byte> left_;
  std::string where_;
  std::string what_;
};

template <class T>
[[nodiscard]] bool read(Reader& in, T& x);

template <class T>
[[nodiscard]] bool read_integer(Reader& in, T& x) {
  std::uint64_t number = 0;
  if (!in.take(number, sizeof(T))) return false;
  x = static_cast<T>(number);
  return true;
}

template <class T>
[[nodiscard]] bool read_enum(Reader& in, T& x) {
  std::underlying_type_t<T> number{};
  if (!read_integer(in, number)) return false;
  bool known = false;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>(
      [&](auto described) { known = known || static_cast<std::underlying_type_t<T>>(described.value) == number; });
  if (!known) return in.fail(fmt::format("{} is not one of its values", +number));
  x = static_cast<T>(number);
  return true;
}

template <class T>
[[nodiscard]] bool read_list(Reader& in, T& list) {
  std::uint32_t count = 0;
  if (!read_integer(in, count)) return false;
  const std::size_t least = written_bytes(typename T::value_type{});
  if (count > in.left() / least) return in.fail(fmt::format("claims {} items, but {} bytes are left", count, in.left()));
  list.resize(count);
  for (auto& item : list)
    if (!read(in, item)) return false;
  return true;
}

template <class T>
[[nodiscard]] bool read_members(Reader& in, T& x) {
  bool good = true;
  boost::mp11::mp_for_each<Members<T>>([&](auto member) { good = good && (read(in, x.*member.pointer) || in.fail_within(member.name)); });
  return good;
}

/// False when the bytes are not a T; then in.problem() has the reason, and x the members read so far.
template <class T>
bool read(Reader& in, T& x) {
  if constexpr (std::is_enum_v<T>) {
    return read_enum(in, x);
  } else if constexpr (std::same_as<T, bool>) {
    std::uint8_t byte = 0;
    if (!read_integer(in, byte)) return false;
    x = byte != 0;
    return byte <= 1 || in.fail(fmt::format("{} is neither 0 nor 1", byte));
  } else if constexpr (std::integral<T>) {
    return read_integer(in, x);
  } else if constexpr (std::same_as<T, double>) {
    std::uint64_t bits = 0;
    const bool good = read_integer(in, bits);
    x = std::bit_cast<double>(bits);
    return good;
  } else if constexpr (is_named_number<T>) {
    return read_integer(in, x.value);
  } else if constexpr (std::same_as<T, Duration>) {
    std::int64_t nanoseconds = 0;
    const bool good = read_integer(in, nanoseconds);
    x = Duration{nanoseconds};
    return good;
  } else if constexpr (List<T>) {
    return read_list(in, x);
  } else if constexpr (std::same_as<T, Range>) {
    if (!read_members(in, x)) return false;
    return x.first <= x.last || in.fail(fmt::format("the range [{}, {}) ends before it begins", x.first, x.last));
  } else {
    return read_members(in, x);
  }
}

}  // namespace motley::wire
