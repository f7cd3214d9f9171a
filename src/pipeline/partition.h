// Partitions a network into stages and places them on devices.
//
// Rule: the slowest stage or link is what a pipeline runs at, so the least such time wins, among cuts whose stages fit their memory.
//   Stage s of P holds up to P - s micro-batches. Devices may stay unused.
//   Exact, up to 10 devices: A[S][d][i], the best for blocks i.. on exactly the devices S beginning with d, from the last stage backwards,
//   so
//     that the number of micro-batches that a stage holds is known: A = min over j, e of max(T(i..j, d), C(j, d, e), A[S\d][e][j]).
//   Beyond: an order of the devices (a greedy chain along the fastest links; by speed), then swaps, shifts, devices left out and added;
//     one pass tests whether a move allows a cut under the best time so far, and bisection finds that cut.
//   Neither knows uplinks that several devices share. Where the best order shares some, they search again: among orders that never return
//     to a place they have left, which share least, and among all with links between places as slow as if each were crossed twice or
//     thrice. The fastest cut under the shared uplinks wins.
// Cost: exact O(2^P P^2 n^2); the heuristic O(P n) for each pass.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "pipeline/problem.h"

namespace motley::pipeline {

/// No cut fits the memory: as an example, the stage of the uniform cut that misses its device's by the most.
struct Infeasible {
  Cut nearest;
  std::uint32_t stage = 0;
  double bytes = 0;  // that this stage needs
};

struct Found {
  std::optional<Cut> cut;  // none: infeasible
  Infeasible why;
};

inline constexpr std::size_t most_devices_exact = 10;

/// Whether later stages may use devices of an uplink that the pipeline has left.
enum class Return : std::uint8_t { allowed, never };

/// The best there is if no uplink is shared. At most most_devices_exact devices.
[[nodiscard]] std::optional<Cut> exact(const Problem& problem, Return back = Return::allowed);

/// The best cut for stages on these devices in this order, all of them used, if no uplink is shared. None: nothing fits.
[[nodiscard]] std::optional<Cut> best_for_order(const Problem& problem, std::span<const std::uint32_t> order);

/// A good cut for many devices, if no uplink is shared; deterministic.
[[nodiscard]] std::optional<Cut> heuristic(const Problem& problem, Return back = Return::allowed);

/// exact() or heuristic(), by the number of devices, with the cost of shared uplinks.
[[nodiscard]] Found find(const Problem& problem);

/// Equal numbers of blocks, devices in their own order, as most systems do. At most as many stages as blocks.
[[nodiscard]] Cut uniform(const Problem& problem);

/// No cut can have a shorter slot than this, whatever the links and the memory.
[[nodiscard]] double lower_bound_s(const Problem& problem);

}  // namespace motley::pipeline
