// The cost model: the time of computation on a device and the best throughput of a cluster. The planner and the simulator use the same one.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cluster/affine.h"
#include "cluster/spec.h"

namespace motley::cluster {

/// A device's undisturbed speed, as its node describes it.
[[nodiscard]] Affine affine(const Node& node);

/// Undisturbed time for `steps` local steps over `samples` samples in all.
[[nodiscard]] Duration compute_time(const Node& node, std::uint64_t samples, std::uint32_t steps);

/// Bytes that a device needs for one step of `samples` samples: four times the parameters (values, gradient, received slices, the state of
/// the optimizer or of local steps) and the activations of the samples.
[[nodiscard]] std::uint64_t step_bytes(std::uint64_t parameter_bytes, std::uint64_t activation_bytes_per_sample, std::uint64_t samples);

/// The most samples of one step in this memory. 0: no limit, as with a memory of 0. None: not a single one fits.
[[nodiscard]] std::optional<std::uint32_t> max_batch(std::uint64_t memory_bytes, std::uint64_t parameter_bytes,
                                                     std::uint64_t activation_bytes_per_sample);

/// Batches that let all devices finish at the same moment, exactly `total` samples together, each at least `least` (while total allows)
/// and at most its `limits` entry (empty: no limits). Whole samples; the last ones go where they finish earliest. Limits take precedence
/// over `least` and over `total`: devices that cannot hold all of it are full.
/// Cost: O(P log P). Water filling: devices at a bound leave the sum, the others share the rest.
[[nodiscard]] std::vector<std::uint32_t> finish_together(std::span<const Affine> devices, std::uint64_t total, std::uint32_t least,
                                                         std::span<const std::uint32_t> limits = {});

/// Samples per second of all devices together when each computes its share of `global_batch` without transfers or waiting.
/// `max_batch`: by node, 0 for no limit; empty: no node has one.
[[nodiscard]] double sum_of_parts(const Spec& spec, std::uint32_t global_batch, std::span<const std::uint32_t> max_batch = {});

}  // namespace motley::cluster
