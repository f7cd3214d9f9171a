#include "trace/pipeline.h"

#include <algorithm>
#include <numeric>

namespace motley::trace {

void Pipeline::on_event(const Event& event) {
  const double at_s = seconds(event.at);
  if (const auto* update = event.as<Applied>()) applied(update->version.value, at_s);
  if (const auto* stage = event.as<Joined>()) joined(*stage);
  if (const auto* layout = event.as<Repartitioned>()) repartitioned(*layout);
  if (const auto* began = event.as<PartBegan>()) part_began(*began, at_s);
  if (const auto* ended = event.as<PartEnded>()) part_ended(*ended, at_s);
}

/// Stages join in order of their indices.
void Pipeline::joined(const Joined& joined) {
  const std::size_t s = joined.worker.value;
  if (s == stages_.size() && s < most_stages) {
    stages_.emplace_back();
    now_.emplace_back();
    busy_.emplace_back();
  }
  if (is_stage(joined.worker)) stages_[s].node = joined.node;
}

/// Micro-batches in progress are lost.
void Pipeline::repartitioned(const Repartitioned& layout) {
  const std::size_t s = layout.stage.value;
  if (!is_stage(layout.stage)) return;
  if (s == 0) ++repartitions_;
  stages_[s].node = layout.node;
  now_[s] = {};
}

void Pipeline::part_began(const PartBegan& began, double at_s) {
  if (!is_stage(began.stage) || began.part >= parts) return;
  Stage& stage = stages_[began.stage.value];
  Now& now = now_[began.stage.value];
  now.part = began.part;
  now.since_s = at_s;
  if (now.part == 0) stage.max_in_flight = std::max(stage.max_in_flight, ++now.held);
  stage.most_late = std::max(stage.most_late, began.late);
}

void Pipeline::part_ended(const PartEnded& ended, double at_s) {
  if (!is_stage(ended.stage)) return;
  const std::uint32_t s = ended.stage.value;
  Now& now = now_[s];
  if (now.part == 1 && now.held > 0) --now.held;
  stages_[s].busy_s.at(now.part) += at_s - now.since_s;
  stages_[s].to_s = at_s;
  busy_[s].emplace_back(now.since_s, at_s);
  if (ended.micro_batch >= first_ && ended.micro_batch < last_) boxes_.push_back({s, now.since_s, at_s, now.part});
}

/// An update follows the one before, or replaces an earlier one after a stage was lost. A gap, as in a run resumed from a checkpoint,
/// begins a new list.
void Pipeline::applied(std::uint64_t version, double at_s) {
  const std::uint64_t next = updates_before_ + updates_s_.size() + 1;
  if (version <= updates_before_ || version > next) {
    updates_before_ = version - 1;
    updates_s_.clear();
  }
  updates_s_.resize(version - 1 - updates_before_);
  updates_s_.push_back(at_s);
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
