#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench/bench.h"
#include "policy/strategies.h"
#include "runtime/stopwatch.h"

namespace motley::bench {
namespace {

policy::Contribution contribution_of(WorkerId worker, std::uint64_t number, const policy::Plan& plan) {
  const double samples_per_second = 250.0 * (1U << (worker.value % 4));
  return {.worker = worker,
          .step = Step{number},
          .base = Version{number},
          .report = {.samples = plan.samples,
                     .local_steps = plan.local_steps,
                     .squared_norm = 1,
                     .compute = from_seconds(plan.samples / samples_per_second),
                     .pull = from_seconds(1e-3)},
          .push = from_seconds(1e-3)};
}

/// Drives a strategy as a chief does: each released worker contributes again, in order of release.
double microseconds_per_contribution(const std::string& name, std::uint32_t workers, std::uint64_t contributions) {
  const std::uint32_t batch = 32 * workers;
  auto made = policy::make_strategy({name, {}, {}}, {batch, 0.9});
  check(made.ok(), "benchmarks name strategies that exist");
  policy::Strategy strategy = std::move(*made);
  policy::Decisions decisions;
  struct Busy {
    WorkerId worker;
    std::uint32_t incarnation{};  // number of cancellations when its step began
  };
  std::deque<Busy> busy;
  std::vector<std::uint32_t> cancelled(workers);
  std::deque<policy::AlignmentTest> asked;
  std::optional<Instant> wake;
  std::vector<double> weights;
  std::uint64_t versions = 0;
  Instant now{};
  const auto carry_out = [&] {
    for (const policy::Apply& update : decisions.apply) {
      weights.resize(update.members.size());
      strategy.weigh(update, weights);
      strategy.updated(Version{++versions}, {0.5, 0.5, 1e-4, 0.02});
    }
    asked.insert(asked.end(), decisions.test_alignment.begin(), decisions.test_alignment.end());
    if (decisions.wake) wake = decisions.wake;
    for (const policy::Cancel& cancel : decisions.cancel) ++cancelled[cancel.worker.value];
    for (const policy::Release& release : decisions.release) {
      strategy.ordered(now, release.worker, strategy.plan(release.worker).samples);
      busy.push_back({release.worker, cancelled[release.worker.value]});
    }
    decisions.clear();
  };
  std::vector<policy::WorkerProfile> profiles;  // every second worker has little memory, so that plans must respect limits
  for (std::uint32_t w = 0; w < workers; ++w) profiles.push_back({.worker = {w}, .device = {.max_batch = w % 2 == 0 ? 0 : 8 + w % 64}});
  strategy.joined(now, profiles, decisions);
  carry_out();
  const runtime::Stopwatch watch;
  for (std::uint64_t i = 0; i < contributions; ++i) {
    for (; !asked.empty(); asked.pop_front(), carry_out()) strategy.alignment_known(now, asked.front(), 1, decisions);
    while (!busy.empty() && busy.front().incarnation != cancelled[busy.front().worker.value]) busy.pop_front();
    if (busy.empty()) {
      check(wake.has_value(), "a strategy without working workers asks to be woken");
      now = std::max(now, *std::exchange(wake, std::nullopt));
      strategy.woken(now, decisions);
      carry_out();
      --i;
      continue;
    }
    const WorkerId worker = busy.front().worker;
    busy.pop_front();
    now += from_seconds(1e-4);
    strategy.contributed(now, contribution_of(worker, i, strategy.plan(worker)), decisions);
    carry_out();
  }
  return watch.seconds() / static_cast<double>(contributions) * 1e6;
}

}  // namespace

boost::json::object bench_policy() {
  boost::json::object out;
  double worst = 0;
  for (const std::string_view name : policy::strategy_names())
    for (const std::uint32_t workers : {10U, 100U, 1000U, 10000U}) {
      const double cost = microseconds_per_contribution(std::string(name), workers, std::max<std::uint64_t>(200'000, 30ULL * workers));
      out[std::string(name) + "_" + std::to_string(workers) + "_us"] = cost;
      if (workers == 10000) worst = std::max(worst, cost);
    }
  out["worst_at_10000_us"] = worst;
  return out;
}

}  // namespace motley::bench
