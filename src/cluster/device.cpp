#include "cluster/device.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cluster/cost.h"

namespace motley::cluster {

Device::Device(const Spec& spec, NodeId node, std::uint64_t seed)
    : node_(spec.nodes[node.value]), jitter_(seed, "jitter", node.value), slowdowns_(seed, "slowdowns", node.value) {
  for (const Fault& fault : spec.faults) {
    if (fault.node != node) continue;
    if (fault.kind == FaultKind::slow) faults_.push_back({fault.at, fault.at + fault.lasting, fault.factor});
    if (fault.kind != FaultKind::pause && fault.kind != FaultKind::hang) continue;
    faults_.push_back({fault.at, fault.at + fault.lasting, std::numeric_limits<double>::infinity()});
    stops_.push_back(faults_.back());
  }
}

Instant Device::finish(Instant start, std::uint64_t samples, std::uint32_t steps) {
  return work(start, samples, steps, Duration{0}, 1).end;
}

Instant Device::spend(Instant start, Duration undisturbed) {
  std::erase_if(slow_periods_, [&](const SlowPeriod& slow_period) { return slow_period.to <= start; });
  const double stretch = node_.jitter > 0 ? jitter_.log_normal(node_.jitter) : 1;
  return finish(start, seconds(undisturbed) * stretch);
}

Device::StepOutcome Device::work(Instant start, std::uint64_t samples, std::uint32_t steps, Duration limit, std::uint32_t micro) {
  std::erase_if(slow_periods_, [&](const SlowPeriod& slow_period) { return slow_period.to <= start; });
  const double stretch = node_.jitter > 0 ? jitter_.log_normal(node_.jitter) : 1;
  if (node_.batch_multiple > 1)
    return at_once(start, steps > 1 ? samples : known_sizes_.largest_fitting(samples, limit, node_.batch_multiple), steps, stretch);
  const auto end_of = [&](std::uint64_t count) { return finish(start, seconds(compute_time(node_, count, steps)) * stretch); };
  const Instant whole = end_of(samples);
  if (limit <= Duration{0} || whole <= start + limit) return {samples, whole};
  // Bisection for the last check of the clock before the limit; then the nearer one of it and the next.
  std::uint64_t before = 0;
  std::uint64_t after = (samples + micro - 1) / micro;
  while (after - before > 1) {
    const std::uint64_t middle = (before + after) / 2;
    (end_of(middle * micro) <= start + limit ? before : after) = middle;
  }
  const std::uint64_t more = std::min<std::uint64_t>(after * micro, samples);
  if (before == 0 || end_of(more) - (start + limit) < start + limit - end_of(before * micro)) return {more, end_of(more)};
  return {before * micro, end_of(before * micro)};
}

Device::StepOutcome Device::at_once(Instant start, std::uint64_t samples, std::uint32_t steps, double stretch) {
  const bool first = known_sizes_.note_batch_size(samples / steps);
  const Duration longer = first ? node_.new_batch_size : Duration{0};
  const Instant end = finish(start, seconds(compute_time(node_, samples, steps)) * stretch) + longer;
  if (!first) known_sizes_.observe(samples, end - start);
  return {samples, end, first && longer > Duration{0}};
}

Instant Device::finish(Instant start, double work) {
  if (faults_.empty() && !node_.slowdowns) return start + from_seconds(work);

  Instant now = start;
  for (;;) {
    extend_slow_periods(now);
    const double factor = factor_at(now);
    const Instant change = next_change(now);
    if (!std::isinf(factor)) {
      const Duration rest = std::min(from_seconds(work * factor), Instant::max() - now);
      if (change == Instant::max() || now + rest <= change) return now + rest;
    }
    work -= seconds(change - now) / factor;
    now = change;
  }
}

Instant Device::hangs_until(Instant now) const {
  Instant until = now;
  for (const SlowPeriod& stop : stops_)
    if (stop.from <= now && now < stop.to) until = std::max(until, stop.to);
  return until;
}

/// Draws random slowdowns until one begins after `until`.
void Device::extend_slow_periods(Instant until) {
  if (!node_.slowdowns) return;
  while (generated_until_ <= until) {
    const Instant from = generated_until_ + from_seconds(slowdowns_.exponential(seconds(node_.slowdowns->mean_gap)));
    const Instant to = from + from_seconds(slowdowns_.exponential(seconds(node_.slowdowns->mean_length)));
    slow_periods_.push_back({from, to, node_.slowdowns->factor});
    generated_until_ = to;
  }
}

double Device::factor_at(Instant now) const {
  double factor = 1;
  for (const auto* list : {&faults_, &slow_periods_})
    for (const SlowPeriod& slow_period : *list)
      if (slow_period.from <= now && now < slow_period.to) factor *= slow_period.factor;
  return factor;
}

Instant Device::next_change(Instant now) const {
  Instant next = Instant::max();
  for (const auto* list : {&faults_, &slow_periods_})
    for (const SlowPeriod& slow_period : *list)
      for (const Instant edge : {slow_period.from, slow_period.to})
        if (edge > now) next = std::min(next, edge);
  return next;
}

}  // namespace motley::cluster
