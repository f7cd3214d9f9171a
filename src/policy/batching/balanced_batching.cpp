#include "policy/batching/balanced_batching.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policy/constants.h"

namespace motley::policy {

void BalancedBatching::joined(std::span<const WorkerProfile> profiles) {
  allocator_.join(profiles);
  start_over();
}

void BalancedBatching::left(WorkerId worker) {
  allocator_.leave(worker);
  start_over();
}

void BalancedBatching::restricted(WorkerId worker, std::uint32_t max_batch) {
  allocator_.restrict(worker, max_batch);
  start_over();
}

void BalancedBatching::start_over() {
  plan_.clear();
  time_limits_.clear();
  step_s_ = 0;
  accumulated_loss_s_ = 0;
  since_plan_ = 0;
  predicted_s_.clear();
  systematic_delay_s_.clear();
  fresh_ = true;
}

const std::vector<std::uint32_t>& BalancedBatching::plan() const {
  if (plan_.empty()) plan_ = allocator_.first_shares(global_batch_);
  return plan_;
}

void BalancedBatching::updated(const Monitor& monitor, const Exposed& exposed) {
  ++since_plan_;
  if (allocator_.workers().empty()) return;
  const bool due = fresh_ || since_plan_ >= options_.replan;
  if (!due && !options_.time_limited) return;
  std::vector<Device> devices;
  devices.reserve(allocator_.workers().size());
  systematic_delay_s_.resize(allocator_.workers().size());
  std::vector<double> predicted;
  for (const WorkerId worker : allocator_.workers()) {
    const SpeedFit& speed = monitor.speed(worker);
    if (speed.observations() == 0) return;  // a new worker: wait for its first step
    const double communication_s = options_.counts_communication ? exposed(worker) : 0;
    const cluster::Affine cost = cautious(worker, speed.fit());
    const double later = systematic_delay_s_[devices.size()];
    devices.push_back({{cost.fixed + communication_s + later, cost.per_sample}, communication_s, speed.jitter()});
    predicted.push_back(devices.back().with_communication.fixed - later);
  }
  if (due) make_plan(devices, monitor);
  for (std::size_t i = 0; i < devices.size(); ++i) predicted[i] += devices[i].with_communication.per_sample * plan_[i];
  predicted_s_ = std::move(predicted);
  make_time_limits(devices);
}

void BalancedBatching::applied(std::span<const Contribution> members) {
  const auto& workers = allocator_.workers();
  const auto as_planned = [&](const Contribution& member, WorkerId worker) {
    return member.worker == worker && allocator_.batch_multiple(worker) > 1 && !member.report.new_batch_size &&
           member.report.samples == batch(worker);
  };
  Instant last{};  // of them
  for (const Contribution& member : members) last = std::max(last, member.arrived);
  const Instant before = std::exchange(last_round_, last);
  // Overlapped steps do not begin together, so their ends cannot be compared.
  const auto began_in_time = [&](const Contribution& member) { return member.arrived - member.report.compute >= before; };
  if (predicted_s_.empty() || !std::equal(members.begin(), members.end(), workers.begin(), workers.end(), as_planned)) return;
  if (!std::all_of(members.begin(), members.end(), began_in_time)) {
    for (double& later : systematic_delay_s_) later *= 1 - balancing::newest_delay;  // earlier delays say little about overlapped steps
    return;
  }
  double at = 0;
  double predicted = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    at += seconds(members[i].arrived) / static_cast<double>(members.size());
    predicted += predicted_s_[i] / static_cast<double>(members.size());
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    const double later = seconds(members[i].arrived) - at - (predicted_s_[i] - predicted);
    const double most = balancing::most_delay * std::min(predicted_s_[i], predicted);
    systematic_delay_s_[i] += balancing::newest_delay * (std::clamp(later, -most, most) - systematic_delay_s_[i]);
  }
}

/// The fit, with its fixed cost limited: a device that runs a step in one piece uses few sizes, whose noise allows any fixed cost.
cluster::Affine BalancedBatching::cautious(WorkerId worker, const cluster::Affine& fit) const {
  if (allocator_.batch_multiple(worker) == 1) return fit;
  const std::uint32_t batch = this->batch(worker);
  const double step = fit.at(batch);
  const double fixed = std::min(fit.fixed, balancing::most_fixed * step);
  return {fixed, (step - fixed) / batch};
}

void BalancedBatching::make_plan(const std::vector<Device>& devices, const Monitor& monitor) {
  std::vector<cluster::Affine> times;
  times.reserve(devices.size());
  for (const Device& device : devices) times.push_back(device.with_communication);
  std::vector<std::uint32_t> plan = allocator_.shares(global_batch_, times);
  if (allocator_.has_batch_multiple() ? worth_replanning(plan, times, monitor) : fresh_ || outside_dead_band(plan)) plan_ = std::move(plan);
  fresh_ = false;
  since_plan_ = 0;
}

/// The common end is the mean of the planned ends weighted by speed: the end that divisible samples would give.
void BalancedBatching::make_time_limits(const std::vector<Device>& devices) {
  double speeds = 0;
  double ends = 0;
  double last = 0;
  double jitter = 0;
  double exposed = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& [times, communication_s, stray] = devices[i];
    const double end = times.at(plan_[i]);
    speeds += 1 / times.per_sample;
    ends += end / times.per_sample;
    exposed += communication_s / times.per_sample;
    last = std::max(last, end);
    jitter = std::max(jitter, stray);
  }
  step_s_ = (ends - exposed) / speeds;
  if (!options_.time_limited) return;
  const bool predictable = jitter <= balancing::steady;
  const double end = predictable ? balancing::surprise * last : ends / speeds;
  time_limits_.resize(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::uint32_t batch = plan_[i];
    const double most = std::min({balancing::most_spare, balancing::spare_per_jitter * jitter}) * batch;
    const std::uint32_t capacity = allocator_.limit(allocator_.workers()[i]) - batch;
    const bool one_piece = allocator_.batch_multiple(allocator_.workers()[i]) > 1;
    time_limits_[i].spare = predictable || one_piece ? 0 : std::min(static_cast<std::uint32_t>(std::ceil(most)), capacity);
    time_limits_[i].limit = from_seconds(
        std::max((one_piece ? balancing::surprise * last : end) - devices[i].exposed, devices[i].with_communication.per_sample));
    time_limits_[i].micro = std::max(1U, batch / balancing::micro_batches);
  }
}

bool BalancedBatching::worth_replanning(const std::vector<std::uint32_t>& plan, const std::vector<cluster::Affine>& times,
                                        const Monitor& monitor) {
  double now = 0;
  double then = 0;
  double price = 0;  // of new sizes: the devices pay it at the same time
  double jitter = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const WorkerId worker = allocator_.workers()[i];
    const std::uint32_t before = this->plan()[i];
    jitter = std::max(jitter, monitor.speed(worker).jitter());
    if (plan[i] != before) price = std::max(price, monitor.new_batch_size_s(worker, plan[i]));
    if (plan[i] == before && (before == 1 || before == allocator_.limit(worker))) continue;  // its batch cannot change
    now = std::max(now, times[i].at(before));
    then = std::max(then, times[i].at(plan[i]));
  }
  if (now <= (jitter <= balancing::steady ? balancing::worth_it : balancing::worth_it_uneven) * then) {
    accumulated_loss_s_ *= balancing::loss_decay;
    return false;
  }
  accumulated_loss_s_ += since_plan_ * (now - then);
  if (accumulated_loss_s_ < balancing::replan_threshold * price) return false;
  accumulated_loss_s_ = 0;
  return true;
}

bool BalancedBatching::outside_dead_band(const std::vector<std::uint32_t>& plan) const {
  for (std::size_t i = 0; i < plan.size(); ++i)
    if (std::abs(static_cast<double>(plan[i]) - plan_[i]) > balancing::dead_band * plan_[i]) return true;
  return false;
}

std::uint32_t BalancedBatching::batch(WorkerId worker) const { return plan()[allocator_.rank(worker)]; }

TimeLimit BalancedBatching::time_limit(WorkerId worker) const {
  return time_limits_.empty() ? TimeLimit{} : time_limits_[allocator_.rank(worker)];
}

}  // namespace motley::policy
