#include "policy/strategy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "policy/constants.h"
#include "policy/lr_schedule.h"

namespace motley::policy {

Strategy::Strategy(Mechanisms mechanisms) : m_(std::move(mechanisms)), monitor_(m_.traffic) {
  m_.batching->interval(m_.interval->steps());
  m_.gate->overlap(overlap());
}

void Strategy::joined(Instant now, std::span<const WorkerProfile> profiles, Decisions& out) {
  std::vector<WorkerId> workers;
  workers.reserve(profiles.size());
  for (const WorkerProfile& profile : profiles) {
    workers.push_back(profile.worker);
    monitor_.joined(profile.worker, profile.device);
    devices_[profile.worker] = profile.device;
    m_.communication->joined(profile.worker);
  }
  for (const WorkerId worker : workers) worker_set_.join(worker);
  m_.batching->joined(profiles);
  m_.gate->joined(now, workers, out);
}

void Strategy::left(Instant now, WorkerId worker, Decisions& out) {
  worker_set_.leave(worker);
  m_.batching->left(worker);
  m_.communication->left(worker);
  devices_.erase(worker);
  m_.gate->left(now, worker, out);
}

void Strategy::contributed(Instant now, const Contribution& contribution, Decisions& out) {
  monitor_.observe(contribution);
  ++since_plan_;
  m_.communication->contributed(contribution);
  if (contribution.report.update_norm > 0) m_.interval->seen(contribution.base, contribution.report.update_norm);
  const double square = contribution.report.norm() * contribution.report.norm() / (m_.traffic.bytes_32 / sizeof(float));
  mean_square_ = mean_square_ == 0 ? square : mean_square_ + defaults::newest_square * (square - mean_square_);
  if (contribution.report.max_batch > 0) m_.batching->restricted(contribution.worker, contribution.report.max_batch);
  m_.gate->contributed(now, contribution, out);
  learn_from_cancelled(out);
}

void Strategy::ordered(Instant now, WorkerId worker, std::uint32_t samples) {
  monitor_.ordered(worker, samples);
  // The first step of a new size counts as one that begins later, so that its worker is not taken for a straggler.
  m_.gate->ordered(now + from_seconds(monitor_.new_batch_size_s(worker, samples)), worker, expected(worker, samples));
}

void Strategy::alignment_known(Instant now, const AlignmentTest& which, double alignment, Decisions& out) {
  m_.gate->alignment_known(now, which, alignment, out);
  learn_from_cancelled(out);
}

void Strategy::woken(Instant now, Decisions& out) {
  m_.gate->woken(now, out);
  learn_from_cancelled(out);
}

/// A cancelled worker begins again at once, with the batch that its new measured speed allows.
void Strategy::learn_from_cancelled(const Decisions& out) {
  for (const Cancel& cancel : out.cancel) monitor_.given_up(cancel.worker, cancel.so_far);
  if (!out.cancel.empty()) m_.batching->updated(monitor_, [this](WorkerId worker) { return exposed_s(worker); });
}

void Strategy::updated(Version version, const TrainingProgress& now) {
  ++updates_;
  m_.gate->updated(monitor_);
  // Plans cost O(P log P): with few contributions per update they are made when an eighth of the workers has contributed.
  if (since_plan_ * defaults::contributions_per_plan < worker_set_.workers().size()) return;
  since_plan_ = 0;
  m_.interval->updated({version, last_.spread, last_.loss, now.progress, now.granted, now.batch, now.rate,
                        m_.batching->step_s() / m_.interval->steps(), longest_transfer_s()});
  m_.batching->interval(m_.interval->steps());
  m_.batching->updated(monitor_, [this](WorkerId worker) { return exposed_s(worker); });
  m_.communication->updated(monitor_, communication_inputs(now));
  m_.gate->overlap(overlap());
}

CommunicationInputs Strategy::communication_inputs(const TrainingProgress& now) const {
  CommunicationInputs inputs{.progress = now.progress, .step_s = m_.batching->step_s(), .updates = updates_, .rate = now.rate};
  inputs.free_transfers = std::all_of(devices_.begin(), devices_.end(), [](const auto& member) { return member.second.free_transfers(); });
  inputs.idle_share = devices_.empty() ? 0 : 1;
  for (const auto& [worker, device] : devices_) inputs.idle_share = std::min(inputs.idle_share, device.idle_share());
  return inputs;
}

/// Fewer bits save no time where transfers are free; bits that the user has set count for every worker.
Bits Strategy::bits(WorkerId worker) const {
  return devices_.at(worker).free_transfers() && !m_.user_set_bits ? Bits{} : m_.communication->bits(worker);
}

double Strategy::exposed_s(WorkerId worker) const {
  const Bits used = bits(worker);
  const double communication_s = monitor_.push_s(worker, used.push) + monitor_.pull_s(worker, used.pull);
  return overlap() == 0 ? communication_s : std::max(0.0, communication_s - m_.batching->step_s());
}

double Strategy::longest_transfer_s() const {
  double longest = 0;
  for (const WorkerId worker : worker_set_.workers()) {
    const Bits used = bits(worker);
    longest = std::max(longest, monitor_.push_s(worker, used.push) + monitor_.pull_s(worker, used.pull));
  }
  return longest;
}

/// Models drift apart further in longer rounds: short rounds need less correction, and more would cost them their momentum.
double Strategy::correction() const { return m_.correction * std::min(1.0, m_.batching->mean_steps() / defaults::long_round); }

Plan Strategy::plan(WorkerId worker) const {
  const std::uint32_t steps = m_.batching->steps(worker);
  return {m_.batching->batch(worker) * steps, steps, bits(worker), m_.batching->time_limit(worker), m_.batching->rate_scale()};
}

double Strategy::rho(WorkerId worker) const {
  if (payload() != Payload::gradient || m_.lookahead_terms == 0) return 0;
  return look_ahead(momentum(), m_.lookahead_terms * m_.gate->streams() + m_.communication->overlap() + m_.gate->staleness(worker));
}

std::uint32_t Strategy::pull_class(WorkerId worker) const {
  constexpr std::uint32_t beyond_bits = 64;
  constexpr std::uint32_t max_cohorts = 64;
  if (const auto cohort = m_.gate->cohort(worker); cohort && *cohort < max_cohorts) return *cohort * beyond_bits + bits(worker).pull;
  return max_cohorts * beyond_bits + worker.value;
}

/// From its order until every server has its contribution; 0: not measured yet.
Duration Strategy::expected(WorkerId worker, std::uint32_t samples) const {
  const SpeedFit& speed = monitor_.speed(worker);
  if (speed.observations() == 0) return {};
  const Bits used = bits(worker);
  return from_seconds(speed.fit().at(samples) + monitor_.push_s(worker, used.push) + monitor_.pull_s(worker, used.pull));
}

// Several streams of updates -----------------------------------------------------------------------------------------------------------
// K concurrent streams make K updates in the time of one. With mu_K = mu^(1/K) the momentum lasts for as many samples as that of one
// stream; gradients are scaled so that each changes w by as much in total, and K terms of rho look as far ahead as one did. (Measured on
// 4421-cheap: 27.0 s to the target; 29.9 s with mu as it is; 33.1 s with 1-(1-mu)*K, which makes it live shorter.)

double Strategy::momentum() const {
  const std::uint32_t streams = m_.gate->streams();
  return streams == 1 ? m_.momentum : std::pow(m_.momentum, 1.0 / streams);
}

double Strategy::gain() const { return m_.gate->streams() == 1 || m_.momentum >= 1 ? 1 : (1 - momentum()) / (1 - m_.momentum); }

void Strategy::weigh(const Apply& update, std::span<double> weights) {
  m_.rule->weigh(update.members, weights);
  m_.batching->applied(update.members);
  last_ = {};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const StepReport& report = update.members[i].report;
    last_.spread += weights[i] * report.norm() * report.norm();
    last_.loss += weights[i] * report.mean_loss();
    last_.steps += weights[i] * report.local_steps;
  }
  for (double& weight : weights) weight *= update.options.scale * gain();
}

double Strategy::share(const Apply& update) const { return m_.rule->share(update.members) * gain(); }

double Strategy::compensation(const Apply& update) const {
  return update.options.compensate ? defaults::compensation / std::sqrt(mean_square_ + 1e-7) : 0;
}

SavedState Strategy::save() const {
  SavedState saved;
  StateWriter state(saved);
  m_.rule->save(state);
  m_.communication->save(state);
  m_.interval->save(state);
  m_.gate->save(state);
  state.number("mean_square", mean_square_);
  state.count("updates", updates_);
  return saved;
}

Outcome Strategy::restore(const SavedState& saved) {
  StateReader state(saved);
  m_.rule->restore(state);
  m_.communication->restore(state);
  m_.interval->restore(state);
  m_.batching->interval(m_.interval->steps());
  m_.gate->overlap(overlap());
  m_.gate->restore(state);
  mean_square_ = state.number("mean_square");
  updates_ = state.count("updates");
  return state.finish();
}

}  // namespace motley::policy
