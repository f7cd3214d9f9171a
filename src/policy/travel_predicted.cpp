#include "policy/travel_predicted.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace motley::policy {
namespace {

constexpr std::array<Bits, 4> all_levels{Bits{32, 32}, Bits{16, 16}, Bits{8, 8}, Bits{4, 8}};
constexpr std::array<double, 4> worths{1, 1, 0.998, 0.99};  // progress of a sample that travelled so, measured
constexpr double worth_of_overlap = 0.92;
constexpr double hidden = 0.7;  // of a step's computing may be travelled under: what is measured alone takes longer when all travel at once
constexpr double better = 1.03;
constexpr std::uint64_t think_every = 10;
constexpr std::uint64_t least_updates_apart = 20;
constexpr double first_part = 0.01;
constexpr double last_part = 0.97;
constexpr std::uint64_t rest_after_unrest = 100;
constexpr std::uint64_t longest_rest = 1'000'000;
constexpr double shy = 0.25;  // of a rate at which overlap has brought unrest
constexpr std::uint64_t rest_after_residual = 100;
constexpr double large_residual = 0.5;

double worth(Bits bits) {
  const auto level = std::find(all_levels.begin(), all_levels.end(), bits);
  return level == all_levels.end() ? 1 : worths[static_cast<std::size_t>(level - all_levels.begin())];
}

double travel_s(const Monitor& monitor, WorkerId worker, Bits bits) {
  return monitor.push_s(worker, bits.push) + monitor.pull_s(worker, bits.pull);
}

}  // namespace

TravelPredicted::TravelPredicted(const Fixed& fixed)
    : fixed_(fixed),
      levels_(fixed.bits ? std::vector{*fixed.bits} : std::vector(all_levels.begin(), all_levels.end())),
      delay_(fixed.delay.value_or(0)),
      rest_(rest_after_unrest) {}

void TravelPredicted::joined(WorkerId worker) {
  roster_.join(worker);
  if (states_.size() <= worker.value) states_.resize(worker.value + 1);
}

void TravelPredicted::contributed(const Contribution& contribution) {
  State& state = states_[contribution.worker.value];
  if (contribution.residual > large_residual && state.level > 0 && contribution.bits == levels_[state.level]) {
    state.least = state.level - 1;
    state.least_until = updates_ + rest_after_residual;
    state.level = state.least;
  }
  unrest_.contributed(contribution);
}

TravelPredicted::Level TravelPredicted::lowest(WorkerId worker) const {
  const State& state = states_[worker.value];
  if (near_) return 0;
  return updates_ < state.least_until ? state.least : levels_.size() - 1;
}

Bits TravelPredicted::bits(WorkerId worker) const { return levels_[states_[worker.value].level]; }

bool TravelPredicted::may_overlap(const Situation& situation) const {
  if (fixed_.delay) return *fixed_.delay == 1;
  if (fixed_.warms_up && situation.near) return false;
  if (situation.updates < least_updates_apart || situation.progress < first_part) return false;
  if (shy_of_ > 0 && situation.rate < rate_ && situation.rate > shy * shy_of_) return false;
  return situation.progress < last_part && situation.updates >= calm_from_;
}

void TravelPredicted::updated(const Monitor& monitor, const Situation& situation) {
  updates_ = situation.updates;
  near_ = situation.near;
  if (unrest_.updated()) {
    calm_from_ = updates_ + rest_;
    if (delay_ == 1 && unrest_.soared()) {
      shy_of_ = situation.rate;
      rest_ = std::min(2 * rest_, longest_rest);
    }
  }
  const bool allowed = may_overlap(situation);
  rate_ = situation.rate;
  if (delay_ == 1 && !allowed) {
    last_thought_.reset();
    delay_ = 0;  // whether or not there is enough to think again
  }
  if (last_thought_ && updates_ < *last_thought_ + think_every) return;
  if (situation.step_s <= 0 || roster_.workers().empty()) return;
  // Somebody has not been measured yet. What is read where it lies may be there before anybody could tell how long it took.
  const auto measured = [&](WorkerId worker) { return near_ || monitor.travelled(worker); };
  if (!std::all_of(roster_.workers().begin(), roster_.workers().end(), measured)) return;
  last_thought_ = updates_;

  const Choice without = apart(monitor, situation.step_s);
  if (!allowed) return adopt(without);
  const Choice with = overlapped(monitor, situation.step_s);
  adopt(prefers_overlap(situation, without, with) ? with : without);
}

bool TravelPredicted::prefers_overlap(const Situation& situation, const Choice& without, const Choice& with) const {
  if (fixed_.delay || (situation.near && situation.at_once)) return true;
  const double margin = delay_ == 1 ? better : 1 / better;  // it must be clearly better to change
  return without.score <= with.score * margin;
}

/// With the most bits that take no longer than this, or with the fewest that it may have. Fewer bits that spare no time would only round.
TravelPredicted::Level TravelPredicted::within(const Monitor& monitor, WorkerId worker, double longest_s) const {
  const auto takes_s = [&](Level level) { return travel_s(monitor, worker, levels_[level]); };
  Level level = 0;
  while (level < lowest(worker) && takes_s(level) > longest_s) ++level;
  while (level > 0 && takes_s(level) >= takes_s(level - 1)) --level;
  return level;
}

TravelPredicted::Choice TravelPredicted::apart(const Monitor& monitor, double step_s) const {
  const auto& workers = roster_.workers();
  Choice best;
  double slowest_best = 0;
  for (Level level = 0; level < levels_.size(); ++level) {
    double slowest = 0;
    for (const WorkerId worker : workers) slowest = std::max(slowest, travel_s(monitor, worker, levels_[std::min(level, lowest(worker))]));
    const double score = worth(levels_[level]) / (step_s + slowest);
    if (score <= best.score) continue;
    best.score = score;
    slowest_best = slowest;
  }
  for (const WorkerId worker : workers) best.levels.push_back(within(monitor, worker, slowest_best));
  return best;
}

TravelPredicted::Choice TravelPredicted::overlapped(const Monitor& monitor, double step_s) const {
  Choice choice;
  choice.delay = 1;
  double slowest = step_s;
  double least_worth = 1;
  for (const WorkerId worker : roster_.workers()) {
    const Level level = within(monitor, worker, hidden * step_s);
    choice.levels.push_back(level);
    slowest = std::max(slowest, travel_s(monitor, worker, levels_[level]));
    least_worth = std::min(least_worth, worth(levels_[level]));
  }
  choice.score = worth_of_overlap * least_worth / slowest;
  return choice;
}

void TravelPredicted::adopt(const Choice& choice) {
  delay_ = choice.delay;
  for (std::size_t rank = 0; rank < choice.levels.size(); ++rank) states_[roster_.workers()[rank].value].level = choice.levels[rank];
}

void TravelPredicted::save(std::vector<double>& state) const {
  state.insert(state.end(), {static_cast<double>(calm_from_), static_cast<double>(rest_), shy_of_});
  unrest_.save(state);
}

void TravelPredicted::restore(SavedState& state) {
  calm_from_ = state.count();
  rest_ = state.count(longest_rest);
  shy_of_ = state.number();
  unrest_.restore(state);
}

}  // namespace motley::policy
