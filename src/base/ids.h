// Names for numbers: ids and counters that cannot be mixed up. They know nothing of what they name.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>

namespace motley {

/// An id of one kind of thing. Dense from 0 within its kind, so it may index a vector.
template <class Tag>
struct Id {
  using Rep = std::uint32_t;
  Rep value{};
  auto operator<=>(const Id&) const = default;
};

/// A counter of one kind of happening. Only grows.
template <class Tag>
struct Count {
  using Rep = std::uint64_t;
  Rep value{};
  auto operator<=>(const Count&) const = default;
  [[nodiscard]] constexpr Count next() const { return {value + 1}; }
  /// How far this is ahead of `other`; 0 when it is not.
  [[nodiscard]] constexpr Rep ahead_of(Count other) const { return value > other.value ? value - other.value : 0; }
};

using WorkerId =
    Id<struct WorkerTag>;  // one membership of one worker: a worker that comes back gets a new one, so an old id is fenced for ever
using ServerId = Id<struct ServerTag>;  // server 0 is the chief's own
using SliceId = Id<struct SliceTag>;
using NodeId = Id<struct NodeTag>;         // a machine of the cluster, as the job describes it
using Step = Count<struct StepTag>;        // a worker's own count of orders
using Version = Count<struct VersionTag>;  // how many global updates a parameter has seen

}  // namespace motley

template <class Tag>
struct std::hash<motley::Id<Tag>> {
  std::size_t operator()(motley::Id<Tag> id) const noexcept { return std::hash<typename motley::Id<Tag>::Rep>{}(id.value); }
};
