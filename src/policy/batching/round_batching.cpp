#include "policy/batching/round_batching.h"

#include <algorithm>
#include <cmath>

#include "policy/constants.h"

namespace motley::policy {

void RoundBatching::joined(std::span<const WorkerProfile> profiles) {
  steps_apart_.joined(profiles);
  allocator_.join(profiles);
  reset_plan();
}

void RoundBatching::left(WorkerId worker) {
  steps_apart_.left(worker);
  allocator_.leave(worker);
  reset_plan();
}

void RoundBatching::reset_plan() {
  plan_.clear();
  owed_.clear();
  late_.clear();
  usual_.clear();
}

void RoundBatching::restricted(WorkerId worker, std::uint32_t max_batch) {
  steps_apart_.restricted(worker, max_batch);
  allocator_.restrict(worker, max_batch);
  plan_.clear();
}

void RoundBatching::applied(std::span<const Contribution> members) {
  late_.clear();
  const auto& workers = allocator_.workers();
  const auto of_worker = [](const Contribution& member, WorkerId worker) { return member.worker == worker; };
  if (!std::equal(members.begin(), members.end(), workers.begin(), workers.end(), of_worker)) return;  // membership has changed
  double mean = 0;
  for (const Contribution& member : members) mean += seconds(member.arrived) / static_cast<double>(members.size());
  for (const Contribution& member : members) late_.push_back(seconds(member.arrived) - mean);
}

/// The wanted time of this worker's next round.
double RoundBatching::time_for(std::size_t rank) const {
  if (late_.empty()) return round_s_;
  const double late = late_[rank];
  const double beyond = std::copysign(std::max(0.0, std::abs(late) - local_rounds::tolerance * round_s_), late);
  return round_s_ -
         std::clamp(local_rounds::correction * beyond, -local_rounds::most_corrected * round_s_, local_rounds::most_corrected * round_s_);
}

/// Samples of a local step. `share`: of a global batch, by speed. A device with a batch multiple keeps its usual batch.
double RoundBatching::settle_local_batch(std::size_t rank, double share) {
  const auto workers = allocator_.workers().size();
  const auto equal = static_cast<std::uint32_t>((global_batch_ + workers - 1) / workers);
  const std::uint32_t local = std::max({equal, std::min(local_rounds::least_local_batch, global_batch_ / 2), 1U});
  const std::uint32_t limit = allocator_.limit(allocator_.workers()[rank]);
  const std::uint32_t batch_multiple = allocator_.batch_multiple(allocator_.workers()[rank]);
  if (batch_multiple == 1) return std::min(local, limit);
  const auto batch_multiples = static_cast<std::uint32_t>(std::round(std::max<double>(local, share) / batch_multiple));
  const std::uint32_t best = std::min(std::max(batch_multiples, 1U) * batch_multiple, limit);
  std::uint32_t& usual = usual_[rank];
  if (usual == 0) usual = steps_apart_.batch(allocator_.workers()[rank]);  // the batch of its steps so far
  if (usual > limit || std::abs(static_cast<double>(best) - usual) > local_rounds::other_size * usual) usual = best;
  return usual;
}

void RoundBatching::updated(const Monitor& monitor, const Exposed& exposed) {
  steps_apart_.updated(monitor, exposed);
  plan_.clear();
  const auto& workers = allocator_.workers();
  if (interval_ <= 1 || workers.empty()) return;
  std::vector<cluster::Affine> times;
  double lately = 0;  // samples per second of all workers
  for (const WorkerId worker : workers) {
    const SpeedFit& speed = monitor.speed(worker);
    if (speed.observations() == 0) return;
    times.push_back(speed.fit());
    lately += speed.samples_per_second();
  }
  std::vector<double> batches;
  double speeds = 0;
  usual_.resize(workers.size());
  for (std::size_t i = 0; i < workers.size(); ++i) {
    batches.push_back(settle_local_batch(i, global_batch_ * monitor.speed(workers[i]).samples_per_second() / lately));
    speeds += batches.back() / times[i].at(batches.back());
  }
  const double all = static_cast<double>(interval_) * global_batch_;
  mean_steps_ = 0;
  plan_.resize(workers.size());
  owed_.resize(workers.size());
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const double speed = batches[i] / times[i].at(batches[i]);
    plan_[i].steps = static_cast<std::uint32_t>(std::max(1.0, std::round(all * speed / speeds / batches[i])));
  }
  round_s_ = all / speeds;
  double samples = 0;
  double squares = 0;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (allocator_.batch_multiple(workers[i]) > 1 && plan_[i].steps > 1)
      plan_[i] = in_usual_steps(i, times[i]);
    else
      plan_[i].batch = evened(i, times[i], batches[i]);
    mean_steps_ += plan_[i].steps / static_cast<double>(workers.size());
    samples += plan_[i].steps * plan_[i].batch;
    squares += static_cast<double>(plan_[i].steps) * plan_[i].steps * plan_[i].batch;
  }
  rate_scale_ = samples * samples / (global_batch_ * squares);
}

/// The batch with which this worker's round ends in time.
std::uint32_t RoundBatching::evened(std::size_t rank, const cluster::Affine& times, double local_batch) {
  const std::uint32_t steps = plan_[rank].steps;
  const double even = (time_for(rank) / steps - times.fixed) / times.per_sample;
  const double least = steps == 1 ? 1 : local_rounds::least_evened * local_batch;  // a single step may be as short as needed
  const double wanted = std::clamp(even, least, local_rounds::most_evened * local_batch) + owed_[rank] / steps;
  const std::uint32_t batch_multiple = allocator_.batch_multiple(allocator_.workers()[rank]);
  const std::uint32_t limit = allocator_.limit(allocator_.workers()[rank]);
  const auto batch = std::min(static_cast<std::uint32_t>(std::max(1.0, std::round(wanted / batch_multiple))) * batch_multiple, limit);
  const double most = std::max(local_rounds::most_owed, static_cast<double>(steps) * batch_multiple);
  owed_[rank] = std::clamp((wanted - batch) * steps, -most, most);
  return batch;
}

/// As many steps of the usual batch as end in time: another size would cost a device with a batch multiple more than it gains.
RoundBatching::Share RoundBatching::in_usual_steps(std::size_t rank, const cluster::Affine& times) {
  const std::uint32_t batch = usual_[rank];
  const double wanted = time_for(rank) / times.at(batch) + owed_[rank] / batch;
  const double steps = std::max(1.0, std::round(wanted));
  owed_[rank] = std::clamp(wanted - steps, -1.0, 1.0) * batch;
  return {static_cast<std::uint32_t>(steps), batch};
}

std::uint32_t RoundBatching::batch(WorkerId worker) const {
  return in_rounds() ? plan_[allocator_.rank(worker)].batch : steps_apart_.batch(worker);
}

std::uint32_t RoundBatching::steps(WorkerId worker) const { return in_rounds() ? plan_[allocator_.rank(worker)].steps : 1; }

}  // namespace motley::policy
