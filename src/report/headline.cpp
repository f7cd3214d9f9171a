// Sentences from figures. Each remark is one small function that returns nothing when it has nothing to say.
#include "report/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/number.h"
#include "report/ranking.h"

namespace motley::report {
namespace {

const Row* row_named(const Comparison& comparison, std::string_view strategy) {
  const auto found = std::find_if(comparison.rows.begin(), comparison.rows.end(), [&](const Row& row) { return row.strategy == strategy; });
  return found == comparison.rows.end() ? nullptr : &*found;
}

/// "2.2x sooner than bsp"; below 1.5 the second decimal still tells something.
std::string sooner_than(double factor, std::string_view other) {
  if (std::abs(factor - 1) < 0.005) return fmt::format("as soon as {}", other);
  return fmt::format("{}x sooner than {}", show_fixed(factor, factor < 1.5 ? 2 : 1), other);
}

/// ", 2.2x sooner than bsp and 1.1x sooner than lb-bsp" and "; bsp does not reach it", as far as either holds.
std::string against_baselines(const Comparison& comparison, const Row& first) {
  std::string sooner;
  std::string missing;
  const auto add = [&](std::string_view name, const std::optional<double>& speedup) {
    const Row* baseline = row_named(comparison, name);
    if (!baseline || baseline == &first) return;
    if (speedup && std::isfinite(*speedup)) sooner += (sooner.empty() ? ", " : " and ") + sooner_than(*speedup, name);
    if (!reached(baseline->time_to_target_s)) missing += fmt::format("; {} does not reach it", name);
  };
  add("bsp", first.speedup_vs_bsp);
  add("lb-bsp", first.speedup_vs_lb_bsp);
  return sooner + missing;
}

std::string nobody_reached(const Comparison& comparison, const Row& best) {
  if (comparison.rows.size() == 1)
    return fmt::format("{} did not reach {}: {} at the end.", best.strategy, target_text(comparison),
                       show_percent(best.final_accuracy_mean, best.final_accuracy_std, 1));
  return fmt::format("No strategy reached {}; {} came nearest with {} at the end.", target_text(comparison), best.strategy,
                     show_percent(best.final_accuracy_mean, best.final_accuracy_std, 1));
}

/// Without a target there is nothing to be first at: what was learned counts or, where nothing was, how fast.
std::string without_target(const Comparison& comparison, const Row& best) {
  const bool alone = comparison.rows.size() == 1;
  if (std::isfinite(best.final_accuracy_mean))
    return fmt::format("No target was set; {} {} {}.", best.strategy, alone ? "ends with" : "ends highest with",
                       show_percent(best.final_accuracy_mean, best.final_accuracy_std, 1));
  if (alone)
    return fmt::format("No target was set; {} gets through {} samples a second.", best.strategy, show_fixed(best.samples_per_second, 0));
  const Row& quickest = *std::max_element(comparison.rows.begin(), comparison.rows.end(),
                                          [](const Row& a, const Row& b) { return a.samples_per_second < b.samples_per_second; });
  return fmt::format("No target was set; {} gets through the most samples, {} a second.", quickest.strategy,
                     show_fixed(quickest.samples_per_second, 0));
}

std::string runner_up(const Row& first, const Row& second) {
  const std::string next = fmt::format("Next is {} after {}", second.strategy, show_seconds(*second.time_to_target_s));
  const SeedSpread a = seed_spread(first);
  const SeedSpread b = seed_spread(second);
  if (a.reached < 2 || b.reached < 2) return next + ".";
  if (b.least_s <= a.most_s) return next + "; the seeds of the two overlap, so read them as close to a tie.";
  return next + "; every seed of the first is ahead of every seed of the second.";
}

/// Speed bought with accuracy must not go unsaid.
std::string better_ending(const Comparison& comparison, const Row& first) {
  const Row& best = *std::max_element(comparison.rows.begin(), comparison.rows.end(),
                                      [](const Row& a, const Row& b) { return a.final_accuracy_mean < b.final_accuracy_mean; });
  const double gap = best.final_accuracy_mean - first.final_accuracy_mean;
  if (!(gap > first.final_accuracy_std + best.final_accuracy_std) || gap < 0.001) return {};
  return fmt::format("{} ends higher: {} against {}.", best.strategy, show_percent(best.final_accuracy_mean, best.final_accuracy_std, 1),
                     show_percent(first.final_accuracy_mean, first.final_accuracy_std, 1));
}

std::string late_seeds(const Row& first) {
  const SeedSpread spread = seed_spread(first);
  if (spread.reached >= spread.seeds) return {};
  return fmt::format("{} of its {} seeds reach the target on their own.", spread.reached, spread.seeds);
}

}  // namespace

Headline headline(const Comparison& comparison) {
  if (comparison.rows.empty()) return {"No strategy was compared.", {}};
  const std::vector<std::size_t> order = ranking(comparison);
  const Row& first = comparison.rows[order[0]];
  if (!comparison.target_accuracy) return {without_target(comparison, first), {}};
  if (!reached(first.time_to_target_s)) return {nobody_reached(comparison, first), {}};

  Headline reported;
  reported.result = fmt::format("{} reaches {} in {}{}.", first.strategy, target_text(comparison), show_seconds(*first.time_to_target_s),
                                against_baselines(comparison, first));
  const auto remark = [&](std::string text) {
    if (!text.empty()) reported.remarks.push_back(std::move(text));
  };
  if (order.size() > 1 && reached(comparison.rows[order[1]].time_to_target_s)) remark(runner_up(first, comparison.rows[order[1]]));
  remark(better_ending(comparison, first));
  remark(late_seeds(first));
  if (comparison.seeds.size() == 1) remark("One seed only: small differences may be chance.");
  return reported;
}

std::string target_text(const Comparison& comparison) {
  return comparison.target_accuracy ? show_percent(*comparison.target_accuracy) : "the target";
}

}  // namespace motley::report
