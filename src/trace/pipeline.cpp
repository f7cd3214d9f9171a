#include "trace/pipeline.h"

#include <algorithm>
#include <numeric>

namespace motley::trace {

void Pipeline::on_event(const Event& e) {
  const double at = seconds(e.at);
  if (e.kind == Kind::applied) applied(e.version.value, at);
  const std::size_t s = e.worker.value;
  // Stages are announced from the first on.
  if (e.kind == Kind::joined && s == stages_.size() && s < most_stages) {
    stages_.emplace_back();
    now_.emplace_back();
    busy_.emplace_back();
  }
  if (s >= stages_.size()) return;
  Stage& stage = stages_[s];
  Now& now = now_[s];
  if (e.kind == Kind::joined) stage.node = static_cast<std::uint32_t>(e.first);
  if (e.kind == Kind::repartition) {
    if (s == 0) ++repartitions_;
    stage.node = e.epoch;
    now = {};  // what was under way is no more
  }
  if (e.kind == Kind::part_began && e.first < parts) {
    now.part = static_cast<std::uint8_t>(e.first);
    now.since_s = at;
    if (now.part == 0) stage.max_in_flight = std::max(stage.max_in_flight, ++now.held);
    stage.most_late = std::max(stage.most_late, e.last);
  }
  if (e.kind != Kind::part_ended) return;
  if (now.part == 1 && now.held > 0) --now.held;
  stage.busy_s.at(now.part) += at - now.since_s;
  stage.to_s = at;
  busy_[s].emplace_back(now.since_s, at);
  if (e.step.value >= first_ && e.step.value < last_) boxes_.push_back({static_cast<std::uint32_t>(s), now.since_s, at, now.part});
}

/// Each follows the one before, or takes the place of an earlier one when somebody was lost in between. A run that goes on from a
/// checkpoint begins with another than the first, and so does whoever leaves some out.
void Pipeline::applied(std::uint64_t version, double at) {
  const std::uint64_t next = updates_before_ + updates_s_.size() + 1;
  if (version <= updates_before_ || version > next) {
    updates_before_ = version - 1;
    updates_s_.clear();
  }
  updates_s_.resize(version - 1 - updates_before_);
  updates_s_.push_back(at);
}

std::vector<double> Pipeline::busy_shares() const {
  double end = 0;
  for (const Stage& stage : stages_) end = std::max(end, stage.to_s);
  const double from = end / 4;
  const double to = 3 * end / 4;
  std::vector<double> shares;
  for (const auto& times : busy_) {
    double busy = 0;
    for (const auto& [began, ended] : times) busy += std::max(0.0, std::min(ended, to) - std::max(began, from));
    shares.push_back(to > from ? busy / (to - from) : 0);
  }
  return shares;
}

double Pipeline::utilization() const {
  const std::vector<double> shares = busy_shares();
  return shares.empty() ? 0 : std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
}

double Pipeline::busiest() const {
  const std::vector<double> shares = busy_shares();
  return shares.empty() ? 0 : *std::max_element(shares.begin(), shares.end());
}

double Pipeline::updates_per_second() const {
  const std::size_t first = updates_s_.size() / 4;
  const std::size_t last = 3 * updates_s_.size() / 4;
  if (last <= first || updates_s_[last] <= updates_s_[first]) return 0;
  return static_cast<double>(last - first) / (updates_s_[last] - updates_s_[first]);
}

}  // namespace motley::trace
