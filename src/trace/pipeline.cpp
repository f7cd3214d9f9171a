#include "trace/pipeline.h"

#include <algorithm>
#include <numeric>

namespace motley::trace {

void Pipeline::told(const Event& e) {
  const double at = seconds(e.at);
  if (e.kind == Kind::applied) {  // again, when somebody was lost in between
    updates_s_.resize(e.version.value - 1, at);
    updates_s_.push_back(at);
  }
  if (e.kind == Kind::recut && e.worker.value == 0) ++recuts_;
  if (e.kind != Kind::joined && e.kind != Kind::recut && e.kind != Kind::part_began && e.kind != Kind::part_ended) return;
  const std::size_t s = e.worker.value;
  if (stages_.size() <= s) {
    stages_.resize(s + 1);
    now_.resize(s + 1);
    busy_.resize(s + 1);
  }
  Stage& stage = stages_[s];
  Now& now = now_[s];
  if (e.kind == Kind::joined || e.kind == Kind::recut) {
    stage.node = e.kind == Kind::joined ? static_cast<std::uint32_t>(e.first) : e.epoch;
    return;
  }
  if (e.kind == Kind::part_began) {
    now.part = static_cast<std::uint8_t>(e.first);
    now.since_s = at;
    if (now.part == 0) stage.most_held = std::max(stage.most_held, ++now.held);
    stage.most_late = std::max(stage.most_late, e.last);
    return;
  }
  if (now.part == 1) --now.held;
  stage.busy_s.at(now.part) += at - now.since_s;
  stage.to_s = at;
  busy_[s].emplace_back(now.since_s, at);
  if (e.step.value >= first_ && e.step.value < last_) boxes_.push_back({static_cast<std::uint32_t>(s), now.since_s, at, now.part});
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
  if (last <= first) return 0;
  return static_cast<double>(last - first) / (updates_s_[last] - updates_s_[first]);
}

}  // namespace motley::trace
