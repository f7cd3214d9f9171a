#include "protocol/progress.h"

#include <algorithm>

namespace motley::protocol {
namespace {

constexpr double times_expected = 10;
constexpr double slowest_step_decay = 0.9;  // per step, of the slowest step before
constexpr double longest_first = 1 << 10;

Duration times(double factor, Duration duration) { return from_seconds(factor * seconds(duration)); }

}  // namespace

void Progress::ordered(Instant now, WorkerId worker, std::uint64_t samples) {
  Worker& it = workers_[worker];
  if (it.since) return;
  it.since = now;
  it.samples = samples;
}

void Progress::done(Instant now, WorkerId worker, std::uint64_t next) {
  Worker& it = workers_[worker];
  const Duration before = times(slowest_step_decay, it.slowest);
  const Duration this_one = took(now, it);
  if (this_one >= before) it.of_samples = it.samples;
  it.slowest = std::max(this_one, before);
  it.before = {};
  it.since.reset();
  if (next > 0) ordered(now, worker, next);
}

void Progress::taken_back(Instant now, WorkerId worker) {
  Worker& it = workers_[worker];
  it.before = took(now, it);
  it.since.reset();
}

void Progress::unknown_was_overdue() { first_ = std::min(2 * first_, longest_first); }

void Progress::driver_paused(Duration time) {
  for (auto& [worker, it] : workers_)
    if (it.since) *it.since += time;
}

Duration Progress::took(Instant now, const Worker& worker) { return worker.before + (worker.since ? now - *worker.since : Duration{0}); }

Duration Progress::expected(const Worker& measured, std::uint64_t samples) {
  if (measured.of_samples == 0) return {};
  const double larger = static_cast<double>(samples) / static_cast<double>(measured.of_samples);
  return times(std::max(1.0, larger), measured.slowest);
}

Duration Progress::limit(const Worker& worker) const {
  if (worker.of_samples > 0) return std::max(least_, times(times_expected, expected(worker, worker.samples)));
  Duration slowest = least_;
  for (const auto& [id, other] : workers_) slowest = std::max(slowest, expected(other, worker.samples));
  return times(times_expected * first_, slowest);
}

std::vector<Overdue> Progress::overdue(Instant now) const {
  std::vector<Overdue> found;
  for (const auto& [id, it] : workers_)
    if (it.since && took(now, it) > limit(it)) found.push_back({id, took(now, it), expected(it, it.samples)});
  return found;
}

Duration Progress::longest_wait(Instant now) const {
  Duration longest{};
  for (const auto& [id, it] : workers_)
    if (it.since) longest = std::max(longest, took(now, it));
  return longest;
}

}  // namespace motley::protocol
