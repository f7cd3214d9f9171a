#include "trace/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "trace/fields.h"

namespace motley::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "records are written as the machine stores numbers");

template <class T>
struct Stored {
  using Type = T;
};
template <>
struct Stored<bool> {
  using Type = std::uint8_t;
};

/// Bytes of all fields of one kind of event.
template <class T>
constexpr std::size_t field_bytes() {
  std::size_t bytes = 0;
  for_each_field(T{}, [&](const auto& field) { bytes += sizeof field; });
  return bytes;
}

template <class... Kinds>
constexpr bool every_kind_fits(const std::variant<Kinds...>*) {
  return std::max({field_bytes<Kinds>()...}) + sizeof(std::int64_t) + sizeof(std::uint8_t) <= record_bytes;
}
static_assert(every_kind_fits(static_cast<const EventData*>(nullptr)));

template <class T>
std::byte* put(std::byte* at, const T& value) {
  const auto stored = static_cast<typename Stored<T>::Type>(value);
  std::memcpy(at, &stored, sizeof stored);
  return at + sizeof stored;
}
template <class T>
const std::byte* get(const std::byte* at, T& value) {
  typename Stored<T>::Type stored{};
  std::memcpy(&stored, at, sizeof stored);
  if constexpr (std::is_same_v<T, bool>)
    value = stored != 0;
  else
    value = stored;
  return at + sizeof stored;
}

template <class T>
EventData read_fields(const std::byte* at) {
  T data;
  for_each_field(data, [&](auto& field) { at = get(at, field); });
  return data;
}

template <class... Kinds>
constexpr auto readers_of(const std::variant<Kinds...>*) {
  return std::array<EventData (*)(const std::byte*), sizeof...(Kinds)>{&read_fields<Kinds>...};
}
constexpr auto readers = readers_of(static_cast<const EventData*>(nullptr));

}  // namespace

void write_record(const Event& event, std::span<std::byte, record_bytes> out) {
  std::byte* at = put(out.data(), static_cast<std::int64_t>(event.at.time_since_epoch().count()));
  at = put(at, static_cast<std::uint8_t>(event.data.index()));
  std::visit([&](const auto& data) { for_each_field(data, [&](const auto& field) { at = put(at, field); }); }, event.data);
  std::fill(at, out.data() + out.size(), std::byte{0});
}

Result<Event> read_record(std::span<const std::byte, record_bytes> bytes) {
  std::int64_t at_ns = 0;
  std::uint8_t kind = 0;
  const std::byte* at = get(bytes.data(), at_ns);
  at = get(at, kind);
  if (kind >= readers.size())
    return bad_input(
        fmt::format("trace record of kind {}: expected 0 to {}; the trace is damaged or from a newer version", kind, readers.size() - 1));
  return Event{Instant{Duration{at_ns}}, readers[kind](at)};
}

}  // namespace motley::trace
