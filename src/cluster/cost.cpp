#include "cluster/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "base/check.h"
#include "cluster/constants.h"

namespace motley::cluster {

Affine affine(const Node& node) {
  check(node.samples_per_second > 0, "a device's rate is known before its time is asked for");
  return {seconds(node.overhead), 1.0 / node.samples_per_second};
}

Duration compute_time(const Node& node, std::uint64_t samples, std::uint32_t steps) {
  const Affine cost = affine(node);
  return from_seconds(cost.fixed * steps + cost.per_sample * static_cast<double>(samples));
}

std::uint64_t step_bytes(std::uint64_t parameter_bytes, std::uint64_t activation_bytes_per_sample, std::uint64_t samples) {
  return copies_of_parameters * parameter_bytes + activation_bytes_per_sample * samples;
}

std::optional<std::uint32_t> max_batch(std::uint64_t memory_bytes, std::uint64_t parameter_bytes,
                                       std::uint64_t activation_bytes_per_sample) {
  if (memory_bytes == 0) return 0;
  if (memory_bytes < step_bytes(parameter_bytes, activation_bytes_per_sample, 1)) return std::nullopt;
  if (activation_bytes_per_sample == 0) return 0;
  const std::uint64_t fit = (memory_bytes - step_bytes(parameter_bytes, 0, 0)) / activation_bytes_per_sample;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(fit, std::numeric_limits<std::uint32_t>::max()));
}

namespace {

/// Real-valued shares: T* = (total + sum fixed/per_sample) / sum 1/per_sample over the devices not at a bound; bounds are met one after the
/// other.
std::vector<double> water_fill(std::span<const Affine> devices, double total, std::span<const std::uint32_t> least,
                               std::span<const std::uint32_t> limits) {
  const std::size_t n = devices.size();
  std::vector<double> share(n, 0.0);
  std::vector<bool> settled(n, false);
  double left = total;
  for (std::size_t round = 0; round <= n; ++round) {
    double numerator = left;
    double denominator = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (!settled[i]) {
        numerator += devices[i].fixed / devices[i].per_sample;
        denominator += 1.0 / devices[i].per_sample;
      }
    if (denominator == 0) break;
    const double finish = numerator / denominator;
    // Of the two kinds of bound the one that moves more samples is met first; settling both at once could overshoot.
    double below = 0;
    double above = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (!settled[i]) {
        share[i] = (finish - devices[i].fixed) / devices[i].per_sample;
        below += std::max(0.0, least[i] - share[i]);
        if (!limits.empty()) above += std::max(0.0, share[i] - limits[i]);
      }
    if (below <= 0 && above <= 0) break;
    for (std::size_t i = 0; i < n; ++i) {
      if (settled[i]) continue;
      const bool low = below >= above && share[i] < least[i];
      const bool high = above > below && share[i] > limits[i];
      if (!low && !high) continue;
      share[i] = low ? least[i] : limits[i];
      settled[i] = true;
      left -= share[i];
    }
  }
  return share;
}

}  // namespace

std::vector<std::uint32_t> finish_together(std::span<const Affine> devices, std::uint64_t total, std::uint32_t least,
                                           std::span<const std::uint32_t> limits) {
  const std::size_t n = devices.size();
  check(n > 0, "a plan has at least one device");
  check(limits.empty() || limits.size() == n, "each device has a limit, or none has");
  std::vector<std::uint32_t> least_each(n, static_cast<std::uint32_t>(std::min<std::uint64_t>(least, total / n)));
  for (std::size_t i = 0; i < limits.size(); ++i) least_each[i] = std::min(least_each[i], limits[i]);
  const std::vector<double> share = water_fill(devices, static_cast<double>(total), least_each, limits);

  std::vector<std::uint32_t> batch(n);
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < n; ++i) {
    batch[i] = std::max(least_each[i], static_cast<std::uint32_t>(std::max(0.0, std::floor(share[i] + 1e-9))));
    given += batch[i];
  }
  // Whole samples: the remainder of rounding goes to the devices that would finish it earliest.
  using Finish = std::pair<double, std::size_t>;
  std::priority_queue<Finish, std::vector<Finish>, std::greater<>> earliest;
  for (std::size_t i = 0; i < n; ++i)
    if (limits.empty() || batch[i] < limits[i]) earliest.emplace(devices[i].at(batch[i] + 1.0), i);
  for (; given < total && !earliest.empty(); ++given) {
    const std::size_t i = earliest.top().second;
    earliest.pop();
    ++batch[i];
    if (limits.empty() || batch[i] < limits[i]) earliest.emplace(devices[i].at(batch[i] + 1.0), i);
  }
  return batch;
}

double sum_of_parts(const Spec& spec, std::uint32_t global_batch, std::span<const std::uint32_t> max_batch) {
  check(max_batch.empty() || max_batch.size() == spec.nodes.size(), "each node has a limit, or none has");
  std::vector<Affine> devices;
  std::vector<std::uint32_t> limits;
  for (std::uint32_t i = 0; i < spec.nodes.size(); ++i)
    if (present_at_start(spec, NodeId{i})) {
      devices.push_back(affine(spec.nodes[i]));
      limits.push_back(max_batch.empty() || max_batch[i] == 0 ? std::numeric_limits<std::uint32_t>::max() : max_batch[i]);
    }
  const std::vector<std::uint32_t> batch = finish_together(devices, global_batch, 1, limits);
  double rate = 0;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (batch[i] > 0) rate += batch[i] / devices[i].at(batch[i]);
  return rate;
}

}  // namespace motley::cluster
