#include "protocol/stage_progress.h"

#include <algorithm>

namespace motley::protocol {
namespace {

constexpr int times_longest = 10;
constexpr int max_first_factor = 1 << 10;

}  // namespace

void StageProgress::begin(std::size_t stages) {
  stages_.assign(stages, {});
  moved_.reset();
}

void StageProgress::committed(Instant now, std::uint32_t stage) {
  stages_[stage].has_committed = true;
  moved_ = now;
}

void StageProgress::driver_paused(Duration time) {
  for (Stage& stage : stages_)
    if (stage.since) {
      *stage.since += time;
      stage.seen += time;
    }
  if (moved_) *moved_ += time;
}

std::optional<StageProgress::Late> StageProgress::status(Instant now, std::uint32_t stage, std::uint64_t done, bool busy) {
  Stage& it = stages_[stage];
  const bool the_same = it.since && busy && done == it.done;
  if (!moved_ || done != it.done) moved_ = now;
  if (it.since && !the_same) it.longest = std::max(it.longest, it.seen - *it.since);
  it.seen = now;
  it.done = done;
  if (!busy) it.since.reset();
  if (busy && !the_same) it.since = now;
  if (!the_same) return std::nullopt;
  const Duration limit = it.has_committed ? std::max(least_, times_longest * it.longest) : first_ * times_longest * least_;
  if (now - *it.since <= limit) return std::nullopt;
  if (!it.has_committed) first_ = std::min(2 * first_, max_first_factor);
  return Late{now - *it.since, it.has_committed ? it.longest : Duration{0}};
}

std::optional<Duration> StageProgress::no_progress(Instant now) const {
  if (!moved_ || now - *moved_ <= times_longest * least_) return std::nullopt;
  if (std::any_of(stages_.begin(), stages_.end(), [](const Stage& stage) { return stage.since.has_value(); })) return std::nullopt;
  return now - *moved_;
}

}  // namespace motley::protocol
