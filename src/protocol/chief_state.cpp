#include "protocol/chief_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace motley::protocol {
namespace {

/// At most total + 1, so that ranges which overlap do not overflow the sum; the ledger refuses those.
std::uint64_t samples_in(const Ledger::Positions& counted, std::uint64_t total) {
  std::uint64_t sum = 0;
  for (const auto& [first, last] : counted) sum = std::min(total + 1, sum + std::min(total + 1, last - std::min(first, last)));
  return sum;
}

}  // namespace

Outcome check_state(const ChiefState& state, std::uint64_t total, std::uint64_t evaluate_every) {
  const auto bad = [](std::string_view name, auto found, const std::string& expected) {
    return bad_input(fmt::format("{}: found {}, expected {}", name, found, expected));
  };
  const std::uint64_t counted = samples_in(state.counted, total);
  if (counted > total) return bad("counted", "more", fmt::format("at most the {} samples of this training", total));
  if (state.version.value > counted || (state.version.value == 0) != (counted == 0))
    return bad("version", state.version.value, fmt::format("1 to {}, as every update counts samples (0 without any)", counted));
  if (state.next_evaluation % evaluate_every != 0 || state.next_evaluation <= counted || state.next_evaluation - counted > evaluate_every)
    return bad("next_evaluation", state.next_evaluation, fmt::format("the first multiple of {} after {} samples", evaluate_every, counted));
  if (state.evaluated > state.version)
    return bad("evaluated", state.evaluated.value, fmt::format("a version up to {}", state.version.value));
  if (state.next_worker.value > most_joins) return bad("next_worker", state.next_worker.value, fmt::format("at most {}", most_joins));
  if (state.trained < Duration{0} || state.trained > longest_training)
    return bad("trained_ns", state.trained.count(), fmt::format("0 to {}", longest_training.count()));
  return Done{};
}

void SnapshotSchedule::evaluated(Version version, std::uint64_t counted) {
  evaluated_ = version;
  while (next_evaluation_ <= counted) next_evaluation_ += evaluate_every_;
}

void SnapshotSchedule::restore(const ChiefState& state) {
  next_evaluation_ = state.next_evaluation;
  evaluated_ = state.evaluated;
  saved_ = state.version;
}

}  // namespace motley::protocol
