// Events for tests: made of a given kind, of every kind, or with random numbers in all fields; found by kind.
#pragma once
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "trace/event.h"
#include "trace/fields.h"

namespace motley::trace {

/// An event of kind T; `worker` is also the stage, `step` also the micro-batch, where T has them.
template <class T>
Event at(double time_s, std::uint32_t worker = 0, std::uint64_t step = 0) {
  T data;
  if constexpr (requires { data.worker; }) data.worker = {worker};
  if constexpr (requires { data.stage; }) data.stage = {worker};
  if constexpr (requires { data.step; }) data.step = {step};
  if constexpr (requires { data.micro_batch; }) data.micro_batch = step;
  return {at_seconds(time_s), data};
}

/// The data of an event with its time.
template <class T>
struct Timed : T {
  Instant at{};
};
/// The events of kind T, in order.
template <class T>
std::vector<Timed<T>> all_of(const std::vector<Event>& events) {
  std::vector<Timed<T>> found;
  for (const Event& event : events)
    if (const T* data = event.as<T>()) found.push_back({*data, event.at});
  return found;
}

template <std::size_t... I>
std::array<EventData, sizeof...(I)> one_of_each(std::index_sequence<I...>) {
  return {EventData(std::in_place_index<I>)...};
}
/// Default values of every kind, in the order of their numbers.
inline std::array<EventData, std::variant_size_v<EventData>> one_of_each() {
  return one_of_each(std::make_index_sequence<std::variant_size_v<EventData>>{});
}

/// Sets every field of `data` from `next()`, a 64-bit number, and doubles to `real`.
template <class Next>
void fill(EventData& data, Next next, double real) {
  const auto set = [&]<class T>(T& field) {
    if constexpr (std::is_same_v<T, bool>)
      field = next() % 2 == 1;
    else if constexpr (std::is_integral_v<T>)
      field = static_cast<T>(next());
    else if constexpr (std::is_floating_point_v<T>)
      field = real;
    else if constexpr (std::is_same_v<T, Duration>)
      field = Duration{static_cast<std::int64_t>(next())};
    else
      field = {static_cast<typename T::Rep>(next())};
  };
  std::visit([&](auto& one) { for_each_field(one, set); }, data);
}

inline Event random_event(Rng& rng) {
  Event event{Instant{Duration{static_cast<std::int64_t>(rng.bits() >> 1)}}, one_of_each()[rng.below(std::variant_size_v<EventData>)]};
  fill(
      event.data, [&] { return rng.bits(); }, rng.normal());
  return event;
}

}  // namespace motley::trace
