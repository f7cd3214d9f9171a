// Names for the numbers in events. This module does not know the enums behind them; its user supplies the names.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace motley::report {

/// An absent function leaves the number itself as the name.
struct EventNames {
  using Name = std::function<std::string(std::uint64_t)>;
  Name node{};      // of Joined and FaultInjected
  Name left{};      // why a worker left
  Name decided{};   // why of Released, Held and Dropped
  Name finished{};  // why the run ended
  Name fault{};     // kind of fault
};
/// `number` as `name` calls it; the number itself where there is no name.
[[nodiscard]] std::string called(const EventNames::Name& name, std::uint64_t number);

}  // namespace motley::report
