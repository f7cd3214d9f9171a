#include "policy/crew.h"

#include <algorithm>
#include <limits>

namespace motley::policy {
namespace {

constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void Crew::join(std::span<const Newcomer> newcomers) {
  for (const auto& [worker, most_samples] : newcomers) {
    roster_.join(worker);
    if (limits_.size() <= worker.value) limits_.resize(worker.value + 1, unlimited);
    limits_[worker.value] = most_samples == 0 ? unlimited : most_samples;
  }
}

void Crew::restrict(WorkerId worker, std::uint32_t most_samples) {
  limits_[worker.value] = std::min(limits_[worker.value], std::max(most_samples, 1U));
}

std::vector<std::uint32_t> Crew::shares(std::uint32_t total, std::span<const cluster::Affine> devices) const {
  std::vector<std::uint32_t> limits;
  limits.reserve(workers().size());
  for (const WorkerId worker : workers()) limits.push_back(limit(worker));
  std::vector<std::uint32_t> shares = cluster::finish_together(devices, total, 1, limits);
  for (std::uint32_t& share : shares) share = std::max(share, 1U);  // there may be more workers than samples
  return shares;
}

std::vector<std::uint32_t> Crew::equal_shares(std::uint32_t total) const {
  return shares(total, std::vector<cluster::Affine>(workers().size(), {.fixed = 0, .per_sample = 1}));
}

}  // namespace motley::policy
