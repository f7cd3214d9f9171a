// The chief's orders: what a worker is told to do next, and on which parameters.
#include <algorithm>
#include <utility>

#include "base/bits.h"
#include "protocol/chief.h"

namespace motley::protocol {

/// The newest parameters went to this worker already, unchanged since.
bool Chief::serves_again(WorkerId worker, const WorkerState& worker_state) const {
  return worker_state.pull && worker_state.pull->version == version_ && worker_state.pull->rho == strategy_.rho(worker);
}

/// The first of this worker's own steps that the parameters of now lack; `next`: none.
Step Chief::first_missing(WorkerId worker, Step next) const {
  const auto& pending_steps = worker_states_.at(worker).pending_steps;
  Step first = pending_steps.empty() ? next : std::min(next, pending_steps.front().step);
  if (const auto waiting = complete_.lower_bound({worker, Step{}}); waiting != complete_.end() && waiting->first.first == worker)
    first = std::min(first, waiting->first.second);
  return first;
}

/// An order given now may go into the version that is saved next. It then travels whole and takes along what rounding has kept back, so
/// that the checkpoint lacks nothing: residuals live in workers, and workers are new after a restart.
bool Chief::saves_next() const {
  if (options_.checkpoint_every == 0) return false;
  const std::uint64_t due = options_.checkpoint_every - version_.value % options_.checkpoint_every;
  const std::uint64_t under_way = strategy_.in_step() ? 1U + strategy_.overlap() : 2 * membership_.size();
  return due <= under_way;
}

void Chief::order_next(Instant now, policy::Release release, ChiefActions& out) {
  const WorkerId worker = release.worker;
  WorkerState& worker_state = worker_states_.at(worker);
  policy::Plan plan = strategy_.plan(worker);
  Lease lease = ledger_.grant(plan.samples + plan.time_limit.spare, worker_state.shard);
  if (lease.empty()) {
    out.emplace_back(Idled{worker});
    strategy_.idled(now, worker, decisions_);
    return;
  }
  if (saves_next()) plan.bits.push = fp32_bits;
  const Step step = worker_state.next;
  worker_state.next = step.next();
  const auto ordered = static_cast<std::uint32_t>(lease.size());
  // Less than was asked for is done in fewer steps, none larger than planned.
  const std::uint64_t steps = (static_cast<std::uint64_t>(plan.local_steps) * lease.size() + plan.samples - 1) / plan.samples;
  const auto local_steps = static_cast<std::uint32_t>(std::min<std::uint64_t>(steps, plan.local_steps));
  out.emplace_back(Released{worker, step, version_, release.why, plan.bits});
  if (!serves_again(worker, worker_state)) {
    worker_state.pull = {step, version_, strategy_.rho(worker)};
    tell_servers(wire::Release{worker, step, worker_state.pull->rho, plan.bits.pull, strategy_.pull_class(worker), strategy_.compensates(),
                               worker_state.bf16_transfer},
                 out);
  }
  const bool time_limited = plan.time_limit.limit > Duration{0} && plan.local_steps == 1;
  out.emplace_back(Send{peer(worker), wire::Order{worker, step, worker_state.pull->step, version_, local_steps,
                                                  plan.rate_scale * schedule_.rate(ledger_.counted()), plan.bits.push, trained(now),
                                                  time_limited ? plan.time_limit.limit : Duration{0}, plan.time_limit.micro, lease,
                                                  first_missing(worker, step), strategy_.correction(), strategy_.mean_steps()}});
  worker_state.pending_steps.push_back({.step = step,
                                        .parameters = worker_state.pull->step,
                                        .version = worker_state.pull->version,
                                        .lease = std::move(lease),
                                        .local_steps = local_steps,
                                        .bits = plan.bits,
                                        .time_limited = time_limited,
                                        .spare = plan.time_limit.spare > 0,
                                        .ordered_at = now});
  progress_.ordered(now, worker, ordered);
  strategy_.ordered(now, worker, ordered);
}

}  // namespace motley::protocol
