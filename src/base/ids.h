// Strong types for ids and counters, so that they cannot be mixed up.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>

namespace motley {

/// An id of one kind of object. Dense from 0 within its kind, so it may index a vector.
template <class Tag>
struct Id {
  using Rep = std::uint32_t;
  Rep value{};
  auto operator<=>(const Id&) const = default;
};

/// A counter of one kind of event. Only grows.
template <class Tag>
struct Count {
  using Rep = std::uint64_t;
  Rep value{};
  auto operator<=>(const Count&) const = default;
  [[nodiscard]] constexpr Count next() const { return {value + 1}; }
  /// The difference to `other`; 0 when this is not ahead.
  [[nodiscard]] constexpr Rep ahead_of(Count other) const { return value > other.value ? value - other.value : 0; }
};

/// One membership of a worker: a worker that rejoins gets a new id, so that messages under the old one stay fenced.
using WorkerId = Id<struct WorkerTag>;
using ServerId = Id<struct ServerTag>;  // server 0 is the chief's own
using SliceId = Id<struct SliceTag>;
using NodeId = Id<struct NodeTag>;         // a machine of the cluster, as the job describes it
using Step = Count<struct StepTag>;        // a worker's count of its orders
using Version = Count<struct VersionTag>;  // number of updates applied to a parameter

}  // namespace motley

template <class Tag>
struct std::hash<motley::Id<Tag>> {
  std::size_t operator()(motley::Id<Tag> id) const noexcept { return std::hash<typename motley::Id<Tag>::Rep>{}(id.value); }
};
