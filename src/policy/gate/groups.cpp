#include "policy/gate/groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "policy/constants.h"
#include "policy/gate/clustering.h"

namespace motley::policy {

void Groups::joined(WorkerId worker) {
  worker_set_.join(worker);
  if (members_.size() <= worker.value) members_.resize(worker.value + 1);
}

void Groups::left(WorkerId worker) {
  worker_set_.leave(worker);
  Member& member = members_[worker.value];
  if (!member.placed) return;
  member.placed = false;
  Sums& sums = sums_[member.group];
  sums.drift -= member.log_speed - member.log_then;
  sums.log_speed -= member.log_speed;
  --sums.members;
}

void Groups::measured(WorkerId worker, const Monitor& monitor) {
  Member& member = members_[worker.value];
  const double log_speed = std::log(monitor.speed(worker).samples_per_second());
  if (member.placed) {
    sums_[member.group].drift += log_speed - member.log_speed;
    sums_[member.group].log_speed += log_speed - member.log_speed;
  }
  member.log_speed = log_speed;
  ++member.measured;
  ++contributions_;
  if (groupings_ == 0) {
    if (everyone_measured()) group_everyone(monitor);
    return;
  }
  if (!member.placed) {
    if (member.measured >= grouping::profile_steps) place(member);
    return;
  }
  const double factor = std::exp(drift(member));
  member.strayed = factor < grouping::least_drift || factor > grouping::most_drift ? member.strayed + 1 : 0;
  if (regroup_ && member.strayed >= grouping::patience && contributions_ >= grouping::rest * worker_set_.workers().size())
    group_everyone(monitor);
}

bool Groups::everyone_measured() const {
  return std::all_of(worker_set_.workers().begin(), worker_set_.workers().end(),
                     [&](WorkerId worker) { return members_[worker.value].measured >= grouping::profile_steps; });
}

/// The change of its log speed relative to that of its group's other members, or of all other workers when it is alone in its group.
double Groups::drift(const Member& member) const {
  const double own = member.log_speed - member.log_then;
  Sums others = sums_[member.group];
  if (others.members < 2)
    for (Group group = 0; group < count_; ++group) {
      if (group == member.group) continue;
      others.drift += sums_[group].drift;
      others.members += sums_[group].members;
    }
  return others.members < 2 ? 0 : own - (others.drift - own) / (others.members - 1);
}

void Groups::group_everyone(const Monitor& monitor) {
  std::vector<double> speeds;
  for (const WorkerId worker : worker_set_.workers()) speeds.push_back(members_[worker.value].log_speed);
  std::vector<Group> best;
  Group best_count = 1;
  std::pair<bool, double> best_merit{false, -std::numeric_limits<double>::infinity()};
  for (Group count = 1; count <= std::min<std::size_t>(grouping::most_groups, speeds.size()); ++count) {
    std::vector<Group> groups = cluster(speeds, count).of;
    const double spread = widest_spread(groups, count);
    const bool within = spread <= std::log(grouping::most_spread);
    const std::pair merit(within, within ? score(groups, count, monitor) : -spread);
    if (merit <= best_merit) continue;
    best = std::move(groups);
    best_count = count;
    best_merit = merit;
  }
  count_ = best_count;
  sums_.assign(count_, {});
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    Member& member = members_[worker_set_.workers()[rank].value];
    member.group = best[rank];
    member.placed = true;
    member.log_then = member.log_speed;
    member.strayed = 0;
    sums_[member.group].log_speed += member.log_speed;
    ++sums_[member.group].members;
  }
  contributions_ = 0;
  ++groupings_;
}

/// Into the group whose mean is nearest.
void Groups::place(Member& member) {
  double nearest = std::numeric_limits<double>::infinity();
  for (Group group = 0; group < count_; ++group) {
    if (sums_[group].members == 0) continue;
    const double distance = std::abs(sums_[group].log_speed / sums_[group].members - member.log_speed);
    if (distance >= nearest) continue;
    nearest = distance;
    member.group = group;
  }
  member.placed = true;
  member.log_then = member.log_speed;
  sums_[member.group].log_speed += member.log_speed;
  ++sums_[member.group].members;
}

double Groups::score(std::span<const Group> groups, Group count, const Monitor& monitor) const {
  struct Sum {
    double speed = 0;
    double jitter = 0;
    std::uint32_t members = 0;
  };
  std::vector<Sum> sums(count);
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    const WorkerId worker = worker_set_.workers()[rank];
    Sum& sum = sums[groups[rank]];
    sum.speed += std::exp(members_[worker.value].log_speed);
    sum.jitter = std::max(sum.jitter, monitor.speed(worker).jitter());
    ++sum.members;
  }
  double throughput = 0;
  for (const Sum& sum : sums) throughput += sum.speed / (1 + sum.jitter * std::sqrt(2 * std::log(static_cast<double>(sum.members))));
  return throughput / (1 + grouping::price_of_a_group * (count - 1));
}

/// Log of fastest over slowest.
double Groups::widest_spread(std::span<const Group> groups, Group count) const {
  std::vector<std::pair<double, double>> ends(count, {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()});
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    const double log_speed = members_[worker_set_.workers()[rank].value].log_speed;
    auto& [slowest, fastest] = ends[groups[rank]];
    slowest = std::min(slowest, log_speed);
    fastest = std::max(fastest, log_speed);
  }
  double widest = 0;
  for (const auto& [slowest, fastest] : ends) widest = std::max(widest, fastest - slowest);
  return widest;
}

}  // namespace motley::policy
