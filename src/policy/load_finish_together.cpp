#include "policy/load_finish_together.h"

#include <cmath>

namespace motley::policy {
namespace {

constexpr double dead_band = 0.05;

}  // namespace

void LoadFinishTogether::joined(std::span<const Newcomer> newcomers) {
  crew_.join(newcomers);
  start_over();
}

void LoadFinishTogether::left(WorkerId worker) {
  crew_.leave(worker);
  start_over();
}

void LoadFinishTogether::start_over() {
  plan_.clear();
  fresh_ = true;
}

const std::vector<std::uint32_t>& LoadFinishTogether::plan() const {
  if (plan_.empty()) plan_ = crew_.equal_shares(global_batch_);
  return plan_;
}

void LoadFinishTogether::updated(const Monitor& monitor) {
  ++since_plan_;
  if (crew_.workers().empty() || (!fresh_ && since_plan_ < replan_)) return;
  std::vector<cluster::Affine> devices;
  devices.reserve(crew_.workers().size());
  for (const WorkerId worker : crew_.workers()) {
    const SpeedFit& speed = monitor.speed(worker);
    if (speed.observations() == 0) return;  // a newcomer: wait for its first step
    devices.push_back(speed.fit());
  }
  std::vector<std::uint32_t> plan = crew_.shares(global_batch_, devices);
  if (fresh_ || outside_dead_band(plan)) plan_ = std::move(plan);
  fresh_ = false;
  since_plan_ = 0;
}

bool LoadFinishTogether::outside_dead_band(const std::vector<std::uint32_t>& plan) const {
  for (std::size_t i = 0; i < plan.size(); ++i)
    if (std::abs(static_cast<double>(plan[i]) - plan_[i]) > dead_band * plan_[i]) return true;
  return false;
}

std::uint32_t LoadFinishTogether::batch(WorkerId worker) const { return plan()[crew_.rank(worker)]; }

}  // namespace motley::policy
