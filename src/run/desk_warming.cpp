// What a desk does before its worker says Hello: a few steps for nothing, so that the device's libraries are loaded and it is known what a
// step costs it and what a sample.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include "run/desk.h"

namespace motley::run {

void Desk::warm_up(std::function<void(std::optional<cluster::Affine>)> then) {
  thread_.post([this, then = std::move(then)] {
    std::optional<cluster::Affine> pace;
    try {
      if (kit_.emulated && kit_.grain > 1) pace = kit_.emulated->pace();
      if (kit_.usual > 0) pace = measured();
    } catch (const std::exception&) {  // what cannot be done cold cannot be done warm: the first step will tell
    }
    boost::asio::post(pump_, [alive = alive_, then, pace] {
      if (*alive) then(pace);
    });
  });
}

/// The usual size and half of it tell what a step costs and what a sample. Others warm up beside us: until it gets no faster.
cluster::Affine Desk::measured() {
  const auto best_of = [&](std::uint64_t size) {
    constexpr int most_tries = 20;
    constexpr int no_faster = 4;  // in a row
    constexpr double faster = 0.97;
    try_out(size);  // cold
    double best = std::numeric_limits<double>::infinity();
    for (int tries = 0, in_vain = 0; tries < most_tries && in_vain < no_faster; ++tries) {
      const double took = seconds(try_out(size));
      in_vain = took < faster * best ? 0 : in_vain + 1;
      best = std::min(best, took);
    }
    meet(size);
    return best;
  };
  const std::uint64_t half = kit_.usual / 2 / std::max(kit_.grain, 1U) * std::max(kit_.grain, 1U);
  const double whole = best_of(kit_.usual);
  if (half == 0) return {0, whole / kit_.usual};
  constexpr double most_fixed = 0.5;  // of a step: two sizes tell it badly
  const double slope = (whole - best_of(half)) / static_cast<double>(kit_.usual - half);
  const double fixed = std::clamp(whole - slope * kit_.usual, 0.0, most_fixed * whole);
  return {fixed, (whole - fixed) / kit_.usual};
}

/// A step for nothing, from and to the memory that real ones use. How long it took.
Duration Desk::try_out(std::uint64_t size) {
  const SharedBuffer values = make_lendable_buffer(kit_.layout.values);
  const SharedBuffer out = make_lendable_buffer(kit_.layout.values);
  std::fill(values->floats().begin(), values->floats().end(), 0.0F);
  std::vector<std::uint32_t> samples(std::min(size, kit_.epoch_samples));
  std::iota(samples.begin(), samples.end(), 0U);
  Still still;
  store::LocalSteps* const steps = kit_.replica.local_steps ? kit_.source->local_steps() : nullptr;
  const auto since = std::chrono::steady_clock::now();
  if (steps != nullptr) {
    steps->begin(values->floats());
    steps->set_out();
    steps->step(samples, {});
    steps->way(out->floats(), nullptr);
  } else {
    kit_.source->gradient(values->floats(), samples, out->floats(), still);
  }
  return std::chrono::steady_clock::now() - since;
}

}  // namespace motley::run
