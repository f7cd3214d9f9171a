#include "protocol/order_issuer.h"

#include <algorithm>
#include <utility>

namespace motley::protocol {

OrderIssuer::Issued OrderIssuer::issue(Instant now, WorkerId worker, Request request, const policy::Strategy& strategy,
                                       const StepTable& steps) {
  Worker& it = workers_.at(worker);
  const policy::Plan& plan = request.plan;
  const Step step = std::exchange(it.next, it.next.next());
  Issued issued;
  const double rho = strategy.rho(worker);
  if (!it.pull || it.pull->version != request.version || it.pull->rho != rho) {
    it.pull = {step, request.version, rho};
    issued.release = {worker, step, rho, plan.bits.pull, strategy.pull_class(worker), strategy.compensates(), it.bf16_transfer};
  }
  // A smaller lease takes fewer local steps, none larger than planned.
  const std::uint64_t scaled = (static_cast<std::uint64_t>(plan.local_steps) * request.lease.size() + plan.samples - 1) / plan.samples;
  const auto local_steps = static_cast<std::uint32_t>(std::min<std::uint64_t>(scaled, plan.local_steps));
  const bool time_limited = plan.time_limit.limit > Duration{0} && plan.local_steps == 1;
  issued.order = {.worker = worker,
                  .step = step,
                  .parameters = it.pull->step,
                  .version = request.version,
                  .local_steps = local_steps,
                  .rate = plan.rate_scale * request.rate,
                  .push_bits = plan.bits.push,
                  .training = request.trained,
                  .limit = time_limited ? plan.time_limit.limit : Duration{0},
                  .micro = plan.time_limit.micro,
                  .lease = request.lease,
                  .missing = steps.first_missing(worker, step),
                  .correction = strategy.correction(),
                  .mean_steps = strategy.mean_steps()};
  issued.step = {.step = step,
                 .parameters = it.pull->step,
                 .version = it.pull->version,
                 .lease = std::move(request.lease),
                 .local_steps = local_steps,
                 .bits = plan.bits,
                 .time_limited = time_limited,
                 .spare = plan.time_limit.spare > 0,
                 .ordered_at = now};
  return issued;
}

}  // namespace motley::protocol
