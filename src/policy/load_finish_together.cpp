#include "policy/load_finish_together.h"

#include <algorithm>
#include <cmath>

namespace motley::policy {
namespace {

constexpr double dead_band = 0.05;

}  // namespace

void LoadFinishTogether::joined(std::span<const WorkerId> workers) {
  for (const WorkerId worker : workers) roster_.join(worker);
  share_equally();
}

void LoadFinishTogether::left(WorkerId worker) {
  roster_.leave(worker);
  share_equally();
}

void LoadFinishTogether::share_equally() {
  const auto count = static_cast<std::uint32_t>(roster_.workers().size());
  plan_.assign(count, 0);
  for (std::uint32_t i = 0; i < count; ++i) plan_[i] = std::max(1U, global_batch_ / count + (i < global_batch_ % count ? 1 : 0));
  fresh_ = true;
}

void LoadFinishTogether::updated(const Monitor& monitor) {
  ++since_plan_;
  if (roster_.workers().empty() || (!fresh_ && since_plan_ < replan_)) return;
  std::vector<cluster::Affine> devices;
  devices.reserve(roster_.workers().size());
  for (const WorkerId worker : roster_.workers()) {
    const SpeedFit& speed = monitor.speed(worker);
    if (speed.observations() == 0) return;  // a newcomer: wait for its first step
    devices.push_back(speed.fit());
  }
  std::vector<std::uint32_t> plan = cluster::finish_together(devices, global_batch_, 1);
  for (auto& batch : plan) batch = std::max(batch, 1U);
  if (fresh_ || outside_dead_band(plan)) plan_ = std::move(plan);
  fresh_ = false;
  since_plan_ = 0;
}

bool LoadFinishTogether::outside_dead_band(const std::vector<std::uint32_t>& plan) const {
  for (std::size_t i = 0; i < plan.size(); ++i)
    if (std::abs(static_cast<double>(plan[i]) - plan_[i]) > dead_band * plan_[i]) return true;
  return false;
}

std::uint32_t LoadFinishTogether::batch(WorkerId worker) const { return plan_[roster_.rank(worker)]; }

}  // namespace motley::policy
