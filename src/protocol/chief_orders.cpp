// The chief's orders: what a worker is told to do next, and on which parameters.
#include <algorithm>
#include <utility>

#include "base/bits.h"
#include "protocol/chief.h"

namespace motley::protocol {

/// The newest parameters went to this worker already, unchanged since.
bool Chief::serves_again(WorkerId worker, const Duty& duty) const {
  return duty.pull && duty.pull->version == version_ && duty.pull->rho == strategy_.rho(worker);
}

/// The first of this worker's own steps that the parameters of now lack; `next`: none.
Step Chief::first_missing(WorkerId worker, Step next) const {
  const auto& outstanding = duties_.at(worker).outstanding;
  Step first = outstanding.empty() ? next : std::min(next, outstanding.front().step);
  if (const auto waiting = complete_.lower_bound({worker, Step{}}); waiting != complete_.end() && waiting->first.first == worker)
    first = std::min(first, waiting->first.second);
  return first;
}

/// An order given now may go into the version that is saved next. It then travels whole and takes along what rounding has kept back, so
/// that the checkpoint lacks nothing: residuals live in workers, and workers are new after a restart.
bool Chief::saves_next() const {
  if (options_.checkpoint_every == 0) return false;
  const std::uint64_t due = options_.checkpoint_every - version_.value % options_.checkpoint_every;
  const std::uint64_t under_way = strategy_.in_step() ? 1U + strategy_.delay() : 2 * membership_.size();
  return due <= under_way;
}

void Chief::order_next(Instant now, policy::Release release, ChiefActions& out) {
  const WorkerId worker = release.worker;
  Duty& duty = duties_.at(worker);
  policy::Plan plan = strategy_.plan(worker);
  Lease lease = ledger_.grant(plan.samples + plan.box.spare, duty.shard);
  if (lease.empty()) {
    out.emplace_back(Rested{worker});
    strategy_.rested(now, worker, decisions_);
    return;
  }
  if (saves_next()) plan.bits.push = plain_bits;
  const Step step = duty.next;
  duty.next = step.next();
  const auto ordered = static_cast<std::uint32_t>(lease.size());
  // Less than was asked for is done in fewer steps, none larger than planned.
  const std::uint64_t steps = (static_cast<std::uint64_t>(plan.local_steps) * lease.size() + plan.samples - 1) / plan.samples;
  const auto local_steps = static_cast<std::uint32_t>(std::min<std::uint64_t>(steps, plan.local_steps));
  out.emplace_back(Released{worker, step, version_, release.why, plan.bits});
  if (!serves_again(worker, duty)) {
    duty.pull = {step, version_, strategy_.rho(worker)};
    tell_servers(
        wire::Release{worker, step, duty.pull->rho, plan.bits.pull, strategy_.pull_class(worker), strategy_.compensates(), duty.halves},
        out);
  }
  const bool limited = plan.box.limit > Duration{0} && plan.local_steps == 1;
  out.emplace_back(Send{
      peer(worker), wire::Order{worker, step, duty.pull->step, version_, local_steps, plan.rate_scale * schedule_.rate(ledger_.counted()),
                                plan.bits.push, trained(now), limited ? plan.box.limit : Duration{0}, plan.box.micro, lease,
                                first_missing(worker, step), strategy_.correction(), strategy_.mean_steps()}});
  duty.outstanding.push_back({.step = step,
                              .parameters = duty.pull->step,
                              .version = duty.pull->version,
                              .lease = std::move(lease),
                              .local_steps = local_steps,
                              .bits = plan.bits,
                              .limited = limited,
                              .spare = plan.box.spare > 0,
                              .ordered_at = now});
  progress_.ordered(now, worker, ordered);
  strategy_.ordered(now, worker, ordered);
}

}  // namespace motley::protocol
