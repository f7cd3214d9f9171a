// The chief goes on from a checkpoint: whether the state in it is one that this training can have been in, and how it is taken over.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "protocol/chief.h"

namespace motley::protocol {
namespace {

/// Fewer than 2^64 for whatever ranges; more than any training has for those that overlap, which the ledger refuses.
std::uint64_t samples_in(const Ledger::Positions& counted, std::uint64_t total) {
  std::uint64_t sum = 0;
  for (const auto& [first, last] : counted) sum = std::min(total + 1, sum + std::min(total + 1, last - std::min(first, last)));
  return sum;
}

}  // namespace

Outcome Chief::fits(const ChiefState& state) const {
  const auto bad = [](std::string_view name, auto found, const std::string& expected) {
    return bad_input(fmt::format("{}: found {}, expected {}", name, found, expected));
  };
  const std::uint64_t counted = samples_in(state.counted, ledger_.total());
  if (counted > ledger_.total()) return bad("counted", "more", fmt::format("at most the {} samples of this training", ledger_.total()));
  if (state.version.value > counted || (state.version.value == 0) != (counted == 0))
    return bad("version", state.version.value, fmt::format("1 to {}, as every update counts samples (0 without any)", counted));
  const std::uint64_t every = options_.evaluate_every;
  if (state.next_evaluation % every != 0 || state.next_evaluation <= counted || state.next_evaluation - counted > every)
    return bad("next_evaluation", state.next_evaluation, fmt::format("the first multiple of {} after {} samples", every, counted));
  if (state.evaluated > state.version)
    return bad("evaluated", state.evaluated.value, fmt::format("a version up to {}", state.version.value));
  if (state.next_worker.value > most_joins) return bad("next_worker", state.next_worker.value, fmt::format("at most {}", most_joins));
  if (state.trained < Duration{0} || state.trained > longest_training)
    return bad("trained_ns", state.trained.count(), fmt::format("0 to {}", longest_training.count()));
  return Done{};
}

Outcome Chief::resume(const ChiefState& state) {
  check(!started_, "a chief goes on before it has begun");
  if (const Outcome fitting = fits(state); !fitting) return fitting.error();
  if (!strategy_.restore(state.strategy))
    return bad_input(
        fmt::format("strategy: found {} numbers that this strategy cannot have saved, expected what it saves", state.strategy.size()));
  if (!ledger_.restore(state.counted))
    return bad_input(
        fmt::format("counted: found ranges that overlap, are empty or end beyond sample {}, expected disjoint ones", ledger_.total()));
  version_ = state.version;
  next_evaluation_ = state.next_evaluation;
  evaluated_ = state.evaluated;
  saved_ = state.version;
  membership_.go_on_from(state.next_worker);
  trained_before_ = state.trained;
  return Done{};
}

void Chief::evaluate(ChiefActions& out) {
  evaluated_ = version_;
  while (next_evaluation_ <= ledger_.counted()) next_evaluation_ += options_.evaluate_every;
  out.emplace_back(Evaluate{version_, ledger_.counted()});
  tell_servers(wire::Export{version_}, out);
}

void Chief::checkpoint(Instant now, ChiefActions& out) {
  saved_ = version_;
  out.emplace_back(Checkpoint{
      {version_, ledger_.counted_positions(), next_evaluation_, evaluated_, membership_.next_id(), trained(now), strategy_.save()}});
  tell_servers(wire::Export{version_, true}, out);
}

}  // namespace motley::protocol
