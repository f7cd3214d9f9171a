#include "policy/batching/batch_allocator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace motley::policy {
namespace {

constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void BatchAllocator::join(std::span<const WorkerProfile> profiles) {
  for (const WorkerProfile& profile : profiles) {
    const WorkerId worker = profile.worker;
    worker_set_.join(worker);
    if (devices_.size() <= worker.value) devices_.resize(worker.value + 1);
    cluster::DeviceProfile& device = devices_[worker.value] = profile.device;
    if (device.max_batch == 0) device.max_batch = unlimited;
  }
}

void BatchAllocator::restrict(WorkerId worker, std::uint32_t max_batch) {
  std::uint32_t& limit = devices_[worker.value].max_batch;
  limit = std::min(limit, std::max(max_batch, 1U));
}

std::vector<std::uint32_t> BatchAllocator::shares(std::uint32_t total, std::span<const cluster::Affine> devices) const {
  std::vector<std::uint32_t> limits;
  limits.reserve(workers().size());
  for (const WorkerId worker : workers()) limits.push_back(limit(worker));
  std::vector<std::uint32_t> shares = cluster::finish_together(devices, total, 1, limits);
  for (std::uint32_t& share : shares) share = std::max(share, 1U);  // there may be more workers than samples
  return whole_multiples(total, devices, std::move(shares));
}

std::vector<std::uint32_t> BatchAllocator::whole_multiples(std::uint32_t total, std::span<const cluster::Affine> devices,
                                                           std::vector<std::uint32_t> shares) const {
  std::vector<std::size_t> even, odd;  // ranks: with a batch multiple, without
  for (std::size_t i = 0; i < shares.size(); ++i) (batch_multiple(workers()[i]) > 1 ? even : odd).push_back(i);
  if (even.empty() || std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}) != total) return shares;
  const auto batch_multiple_of = [&](std::size_t i) { return batch_multiple(workers()[i]); };
  const auto fits = [&](std::size_t i, std::uint64_t samples) { return samples <= limit(workers()[i]); };
  // The part of `wanted` that it may have at once: a batch multiple, less at the limit of its memory.
  const auto more_for = [&](std::size_t i, std::int64_t wanted) {
    return std::clamp<std::int64_t>(std::min<std::int64_t>(wanted, std::int64_t{limit(workers()[i])} - shares[i]), 0, batch_multiple_of(i));
  };
  std::int64_t left = total;
  for (const std::size_t i : even) {
    // Nearest multiple if other workers even out the rest, else rounded down: the rest is distributed below.
    const std::uint32_t nearest = odd.empty() ? 0 : batch_multiple_of(i) / 2;
    const std::uint32_t batch_multiples = std::max(1U, (shares[i] + nearest) / batch_multiple_of(i));
    shares[i] = fits(i, std::uint64_t{batch_multiples} * batch_multiple_of(i)) ? batch_multiples * batch_multiple_of(i) : shares[i];
    left -= shares[i];
  }
  if (!odd.empty() && left >= static_cast<std::int64_t>(odd.size())) {
    std::vector<cluster::Affine> others;
    std::vector<std::uint32_t> limits;
    for (const std::size_t i : odd) {
      others.push_back(devices[i]);
      limits.push_back(limit(workers()[i]));
    }
    const auto rest = cluster::finish_together(others, static_cast<std::uint32_t>(left), 1, limits);
    for (std::size_t i = 0; i < odd.size(); ++i) left -= shares[odd[i]] = std::max(rest[i], 1U);
  } else {
    for (const std::size_t i : odd) left -= shares[i];
  }
  // One multiple at a time to the worker that would end first with it, or from the worker that ends last.
  while (left != 0) {
    std::size_t best = even.front();
    double best_end = left > 0 ? std::numeric_limits<double>::infinity() : -1;
    for (const std::size_t i : even) {
      const std::int64_t more = more_for(i, left);
      const double end = devices[i].at(static_cast<double>(shares[i] + more));
      if (left > 0 ? end < best_end && more > 0 : end > best_end && shares[i] > 1) {
        best = i;
        best_end = end;
      }
    }
    if (!std::isfinite(best_end) || best_end < 0) return shares;  // no worker can take more: as near as possible
    const std::int64_t change =
        left > 0 ? more_for(best, left) : std::max(left, -std::int64_t{std::min(batch_multiple_of(best), shares[best] - 1)});
    shares[best] = static_cast<std::uint32_t>(shares[best] + change);
    left -= change;
  }
  return shares;
}

bool BatchAllocator::has_batch_multiple() const {
  return std::any_of(workers().begin(), workers().end(), [&](WorkerId worker) { return batch_multiple(worker) > 1; });
}

std::vector<std::uint32_t> BatchAllocator::first_shares(std::uint32_t total) const {
  std::vector<cluster::Affine> devices;
  for (const WorkerId worker : workers()) {
    const cluster::DeviceProfile& device = devices_[worker.value];
    if (!device.measured()) return equal_shares(total);
    devices.push_back(device.cost);
  }
  return shares(total, devices);
}

std::vector<std::uint32_t> BatchAllocator::equal_shares(std::uint32_t total) const {
  return shares(total, std::vector<cluster::Affine>(workers().size(), {.fixed = 0, .per_sample = 1}));
}

}  // namespace motley::policy
