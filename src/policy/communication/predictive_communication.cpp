#include "policy/communication/predictive_communication.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "policy/constants.h"

namespace motley::policy {
namespace {

double efficiency(Bits bits) {
  const auto level = std::find(prediction::all_levels.begin(), prediction::all_levels.end(), bits);
  return level == prediction::all_levels.end() ? 1
                                               : prediction::efficiencies[static_cast<std::size_t>(level - prediction::all_levels.begin())];
}

double transfer_s(const Monitor& monitor, WorkerId worker, Bits bits) {
  return monitor.push_s(worker, bits.push) + monitor.pull_s(worker, bits.pull);
}

}  // namespace

PredictiveCommunication::PredictiveCommunication(const Fixed& fixed)
    : fixed_(fixed),
      levels_(fixed.bits ? std::vector{*fixed.bits} : std::vector(prediction::all_levels.begin(), prediction::all_levels.end())),
      overlap_(fixed.overlap.value_or(0)),
      retry_delay_(prediction::retry_after_divergence) {}

void PredictiveCommunication::joined(WorkerId worker) {
  worker_set_.join(worker);
  if (states_.size() <= worker.value) states_.resize(worker.value + 1);
}

void PredictiveCommunication::contributed(const Contribution& contribution) {
  State& state = states_[contribution.worker.value];
  if (contribution.report.residual > prediction::large_residual && state.level > 0 && contribution.bits == levels_[state.level]) {
    state.least = state.level - 1;
    state.least_until = updates_ + prediction::retry_after_residual;
    state.level = state.least;
  }
  divergence_detector_.contributed(contribution);
}

PredictiveCommunication::Level PredictiveCommunication::lowest(WorkerId worker) const {
  const State& state = states_[worker.value];
  if (free_transfers_) return 0;
  return updates_ < state.least_until ? state.least : levels_.size() - 1;
}

Bits PredictiveCommunication::bits(WorkerId worker) const { return levels_[states_[worker.value].level]; }

bool PredictiveCommunication::may_overlap(const CommunicationInputs& inputs) const {
  if (fixed_.overlap) return *fixed_.overlap == 1;
  if (inputs.free_transfers && !fixed_.overlap_free_transfers) return false;
  if (inputs.updates < prediction::least_updates || inputs.progress < prediction::first_part) return false;
  if (failed_lr_ > 0 && inputs.rate < rate_ && inputs.rate > prediction::retry_lr * failed_lr_) return false;
  return inputs.progress < prediction::last_part && inputs.updates >= retry_at_;
}

void PredictiveCommunication::updated(const Monitor& monitor, const CommunicationInputs& inputs) {
  updates_ = inputs.updates;
  free_transfers_ = inputs.free_transfers;
  if (divergence_detector_.updated()) {
    retry_at_ = updates_ + retry_delay_;
    if (overlap_ == 1 && divergence_detector_.spiked()) {
      failed_lr_ = inputs.rate;
      retry_delay_ = std::min(2 * retry_delay_, prediction::max_retry_delay);
    }
  }
  const bool allowed = may_overlap(inputs);
  rate_ = inputs.rate;
  if (overlap_ == 1 && !allowed) {
    last_decided_.reset();
    overlap_ = 0;  // even if no new decision is possible now
  }
  if (last_decided_ && updates_ < *last_decided_ + prediction::decide_every) return;
  if (inputs.step_s <= 0 || worker_set_.workers().empty()) return;
  // Free transfers may be too short to be measured.
  const auto measured = [&](WorkerId worker) { return free_transfers_ || monitor.transferred(worker); };
  if (!std::all_of(worker_set_.workers().begin(), worker_set_.workers().end(), measured)) return;
  last_decided_ = updates_;

  const Choice without = sequential(monitor, inputs.step_s);
  if (!allowed) return adopt(without);
  const Choice with = overlapped(monitor, inputs.step_s);
  adopt(prefers_overlap(inputs, without, with) ? with : without);
}

bool PredictiveCommunication::prefers_overlap(const CommunicationInputs& inputs, const Choice& without, const Choice& with) const {
  if (fixed_.overlap || (inputs.free_transfers && inputs.idle_share > 0)) return true;
  const double margin = overlap_ == 1 ? prediction::better : 1 / prediction::better;  // a change must be clearly better
  return without.score <= with.score * margin;
}

/// The level with the most bits that takes at most `longest_s`, or the lowest allowed one; never fewer bits that save no time.
PredictiveCommunication::Level PredictiveCommunication::within(const Monitor& monitor, WorkerId worker, double longest_s) const {
  const auto takes_s = [&](Level level) { return transfer_s(monitor, worker, levels_[level]); };
  Level level = 0;
  while (level < lowest(worker) && takes_s(level) > longest_s) ++level;
  while (level > 0 && takes_s(level) >= takes_s(level - 1)) --level;
  return level;
}

PredictiveCommunication::Choice PredictiveCommunication::sequential(const Monitor& monitor, double step_s) const {
  const auto& workers = worker_set_.workers();
  Choice best;
  double slowest_best = 0;
  for (Level level = 0; level < levels_.size(); ++level) {
    double slowest = 0;
    for (const WorkerId worker : workers)
      slowest = std::max(slowest, transfer_s(monitor, worker, levels_[std::min(level, lowest(worker))]));
    const double score = efficiency(levels_[level]) / (step_s + slowest);
    if (score <= best.score) continue;
    best.score = score;
    slowest_best = slowest;
  }
  for (const WorkerId worker : workers) best.levels.push_back(within(monitor, worker, slowest_best));
  return best;
}

PredictiveCommunication::Choice PredictiveCommunication::overlapped(const Monitor& monitor, double step_s) const {
  Choice choice;
  choice.overlap = 1;
  double slowest = step_s;
  double least_worth = 1;
  for (const WorkerId worker : worker_set_.workers()) {
    const Level level = within(monitor, worker, prediction::hidden * step_s);
    choice.levels.push_back(level);
    slowest = std::max(slowest, transfer_s(monitor, worker, levels_[level]));
    least_worth = std::min(least_worth, efficiency(levels_[level]));
  }
  choice.score = prediction::efficiency_of_overlap * least_worth / slowest;
  return choice;
}

void PredictiveCommunication::adopt(const Choice& choice) {
  overlap_ = choice.overlap;
  for (std::size_t rank = 0; rank < choice.levels.size(); ++rank) states_[worker_set_.workers()[rank].value].level = choice.levels[rank];
}

void PredictiveCommunication::save(StateWriter& state) const {
  state.count("communication.retry_at", retry_at_);
  state.count("communication.retry_delay", retry_delay_);
  state.number("communication.failed_lr", failed_lr_);
  divergence_detector_.save(state);
}

void PredictiveCommunication::restore(StateReader& state) {
  retry_at_ = state.count("communication.retry_at");
  retry_delay_ = state.count("communication.retry_delay", prediction::max_retry_delay);
  failed_lr_ = state.number("communication.failed_lr");
  divergence_detector_.restore(state);
}

}  // namespace motley::policy
